#include "trainer/table/row_pieces.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace dtrain {
namespace {

enum class Form : uint32_t { kNumbers = 0, kBits = 1 };
constexpr uint32_t kOfDelta = 2;  // is added to the form

constexpr size_t kHeadBytes = 2 * sizeof(uint32_t);

size_t BytesOfBits(uint64_t bits) { return (bits + 31) / 32 * sizeof(uint32_t); }
uint64_t UnitsOf(RowRange range, uint64_t unit) { return (range.size() + unit - 1) / unit; }

template <typename Number>
void Put(std::byte* at, Number number) {
  std::memcpy(at, &number, sizeof number);
}
template <typename Number>
Number Get(const std::byte* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

bool HasBit(const std::byte* bits, uint64_t i) {
  return (bits[i / 8] >> i % 8 & std::byte{1}) != std::byte{0};
}
// Writes a bit for each of `count` values, which lie in `range`, at (value - range.begin) / `unit`. Returns
// where they end.
std::byte* PutBits(const uint64_t* values, size_t count, RowRange range, uint64_t unit, std::byte* at) {
  const size_t bytes = BytesOfBits(UnitsOf(range, unit));
  std::memset(at, 0, bytes);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t number = values[i] - range.begin, bit = unit == 1 ? number : number / unit;
    at[bit / 8] |= std::byte{1} << bit % 8;
  }
  return at + bytes;
}

// Copies the `width` values at `from` of each of `count` rows of `values`, one after the other. Returns where
// they end.
std::byte* PutValues(const float* from, size_t count, size_t values, size_t width, std::byte* at) {
  const size_t bytes = width * sizeof(float);
  if (count == 0) return at;  // then `from` may be null
  if (width == values) {
    std::memcpy(at, from, count * bytes);
  } else if (width == 1) {
    for (size_t row = 0; row < count; ++row) Put(at + row * bytes, from[row * values]);
  } else {
    for (size_t row = 0; row < count; ++row) std::memcpy(at + row * bytes, from + row * values, bytes);
  }
  return at + count * bytes;
}

}  // namespace

// A row takes its values and at most two bits, rounded up; the heads are in what is left over.
RowPieces::RowPieces(RowRange part, int64_t values) : part_(part) {
  const uint64_t row_bytes = static_cast<uint64_t>(values) * sizeof(float) + 1;
  DT_CHECK(row_bytes + kHeadBytes + sizeof(uint32_t) <= kMaxRowPieceBytes, values);
  while (2 * rows_ * row_bytes + kHeadBytes + sizeof(uint32_t) <= kMaxRowPieceBytes) rows_ *= 2;
}

RowRange RowPieces::At(int64_t piece) const {
  const uint64_t begin = part_.begin + static_cast<uint64_t>(piece) * rows_;
  return {begin, std::min(begin + rows_, part_.end)};
}

void RowPieceWriter::Grow() {
  constexpr size_t kFirst = 1024;
  rows_.resize(std::max(kFirst, 2 * rows_.size()));
  row_values_.resize(rows_.size() * static_cast<size_t>(values_));
}

size_t RowPieceWriter::Finish(RowRange range, std::byte* bytes) {
  const size_t count = std::exchange(count_, 0);
  if (count == 0 && groups_.empty()) return 0;
  const Form form = count * sizeof(uint32_t) <= BytesOfBits(range.size()) ? Form::kNumbers : Form::kBits;
  Put(bytes, static_cast<uint32_t>(count));
  Put(bytes + sizeof(uint32_t), static_cast<uint32_t>(form) | (group_rows_ != 0 ? kOfDelta : 0));
  std::byte* at = bytes + kHeadBytes;
  if (group_rows_ != 0) {
    Put(at, static_cast<uint32_t>(group_rows_));
    at = PutBits(groups_.data(), groups_.size(), range, group_rows_, at + sizeof(uint32_t));
  }
  if (form == Form::kNumbers) {
    for (size_t i = 0; i < count; ++i, at += sizeof(uint32_t)) {
      Put(at, static_cast<uint32_t>(rows_[i] - range.begin));
    }
  } else {
    at = PutBits(rows_.data(), count, range, 1, at);
  }
  for (int64_t begin = 0; begin < values_; begin += width_) {
    at = PutValues(row_values_.data() + begin, count, static_cast<size_t>(values_),
                   static_cast<size_t>(std::min(width_, values_ - begin)), at);
  }
  groups_.clear();
  DT_CHECK(static_cast<size_t>(at - bytes) <= kMaxRowPieceBytes, at - bytes);
  return static_cast<size_t>(at - bytes);
}

namespace {

// Reads which rows a piece has. Returns what is wrong; empty: nothing.
std::string ReadNumbers(const std::byte* at, Form form, RowRange piece, std::vector<uint64_t>* rows) {
  if (form == Form::kNumbers) {
    uint64_t next = 0;
    for (size_t i = 0; i < rows->size(); ++i) {
      const uint64_t number = Get<uint32_t>(at + i * sizeof(uint32_t));
      if (number < next || number >= piece.size()) {
        return fmt::format("row {} of it is {}, not from {} to {}", i, number, next, piece.size() - 1);
      }
      next = number + 1;
      (*rows)[i] = piece.begin + number;
    }
    return std::string();
  }
  size_t found = 0;
  for (uint64_t row = 0; row < BytesOfBits(piece.size()) * 8; ++row) {
    if (!HasBit(at, row)) continue;
    if (row >= piece.size() || found == rows->size()) return "it has more bits than rows";
    (*rows)[found++] = piece.begin + row;
  }
  return found == rows->size() ? "" : fmt::format("it has {} bits for {} rows", found, rows->size());
}

// Reads what a piece of a delta covers, from `at` on, of which `size` bytes are there. Returns how many it
// took; 0: they are wrong.
size_t ReadCover(const std::byte* at, size_t size, RowRange piece, RowCover* cover) {
  if (size < sizeof(uint32_t)) return 0;
  const uint64_t group_rows = Get<uint32_t>(at);
  if (group_rows == 0) return 0;
  const uint64_t groups = UnitsOf(piece, group_rows);
  if (size - sizeof(uint32_t) < BytesOfBits(groups)) return 0;
  *cover = {piece.begin, group_rows, std::vector<bool>(groups)};
  for (uint64_t i = 0; i < groups; ++i) cover->groups[i] = HasBit(at + sizeof(uint32_t), i);
  return sizeof(uint32_t) + BytesOfBits(groups);
}

}  // namespace

std::string ReadRowPiece(net::TensorView bytes, RowRange piece, int64_t width, int64_t values, RowRange range,
                         const VisitRow& visit, RowCover* cover) {
  if (bytes.size == 0) return std::string();
  if (bytes.size < kHeadBytes) return fmt::format("it has {} bytes", bytes.size);
  const auto count = size_t{Get<uint32_t>(bytes.data)};
  const auto form = static_cast<Form>(Get<uint32_t>(bytes.data + sizeof(uint32_t)) ^ (cover ? kOfDelta : 0));
  if (form != Form::kNumbers && form != Form::kBits) return "its form is unknown";
  if (count > piece.size() || (count == 0 && cover == nullptr)) {
    return fmt::format("it has {} of the {} rows of its range", count, piece.size());
  }
  size_t head_bytes = kHeadBytes;
  if (cover != nullptr) {
    const size_t taken = ReadCover(bytes.data + head_bytes, bytes.size - head_bytes, piece, cover);
    if (taken == 0) return "it does not say which groups it covers";
    head_bytes += taken;
  }
  const size_t number_bytes = form == Form::kNumbers ? count * sizeof(uint32_t) : BytesOfBits(piece.size());
  const size_t needed = head_bytes + number_bytes + count * static_cast<size_t>(values) * sizeof(float);
  if (bytes.size != needed) return fmt::format("it has {} bytes, not {}", bytes.size, needed);
  std::vector<uint64_t> rows(count);
  std::string wrong = ReadNumbers(bytes.data + head_bytes, form, piece, &rows);
  if (!wrong.empty()) return wrong;
  const std::byte* const first = bytes.data + head_bytes + number_bytes;
  std::vector<float> row_values(static_cast<size_t>(values));
  for (size_t row = 0; row < count; ++row) {
    if (rows[row] < range.begin || rows[row] >= range.end) continue;
    for (int64_t begin = 0; begin < values; begin += width) {
      const size_t part = static_cast<size_t>(std::min(width, values - begin));
      std::memcpy(row_values.data() + begin,
                  first + (static_cast<size_t>(begin) * count + row * part) * sizeof(float),
                  part * sizeof(float));
    }
    visit(rows[row], row_values.data());
  }
  return wrong;
}

std::string ReadDeltaPiece(net::TensorView delta, net::TensorView base, RowRange piece, int64_t width,
                           int64_t values, RowRange range, const VisitRow& visit) {
  RowCover cover;
  std::vector<uint64_t> rows;  // of the delta, in `range`
  std::vector<float> row_values;
  std::string wrong = ReadRowPiece(
      delta, piece, width, values, range,
      [&](uint64_t row, const float* of_row) {
        rows.push_back(row);
        row_values.insert(row_values.end(), of_row, of_row + values);
      },
      &cover);
  if (!wrong.empty()) return wrong;
  const auto stray = std::find_if(rows.begin(), rows.end(), [&](uint64_t row) { return !cover.Has(row); });
  if (stray != rows.end()) return fmt::format("row {} is in no group that it covers", *stray);
  size_t next = 0;
  const auto visit_before = [&](uint64_t end) {
    for (; next < rows.size() && rows[next] < end; ++next) {
      visit(rows[next], row_values.data() + next * static_cast<size_t>(values));
    }
  };
  wrong = ReadRowPiece(base, piece, width, values, range, [&](uint64_t row, const float* of_row) {
    if (cover.Has(row)) return;
    visit_before(row);
    visit(row, of_row);
  });
  if (wrong.empty()) visit_before(range.end);
  return wrong.empty() ? wrong : "in its base " + wrong;
}

}  // namespace dtrain
