#include "trainer/table/row_pieces.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace dtrain {
namespace {

enum class Form : uint32_t { kNumbers = 0, kBits = 1 };

constexpr size_t kHeadBytes = 2 * sizeof(uint32_t);

size_t BytesOfBits(uint64_t rows) { return (rows + 31) / 32 * sizeof(uint32_t); }

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

}  // namespace

// A row takes its values and at most a bit, rounded up; the head is in what is left over.
RowPieces::RowPieces(RowRange part, int64_t values) : part_(part) {
  const uint64_t row_bytes = static_cast<uint64_t>(values) * sizeof(float) + 1;
  DT_CHECK(row_bytes + kHeadBytes + sizeof(uint32_t) <= kMaxRowPieceBytes, values);
  while (2 * rows_ * row_bytes + kHeadBytes + sizeof(uint32_t) <= kMaxRowPieceBytes) rows_ *= 2;
}

RowRange RowPieces::At(int64_t piece) const {
  const uint64_t begin = part_.begin + static_cast<uint64_t>(piece) * rows_;
  return {begin, std::min(begin + rows_, part_.end)};
}

void RowPieceWriter::Add(uint64_t row, const float* values) {
  rows_.push_back(row);
  row_values_.insert(row_values_.end(), values, values + values_);
}

size_t RowPieceWriter::Finish(RowRange range, std::byte* bytes) {
  const size_t count = rows_.size();
  if (count == 0) return 0;
  const size_t bit_bytes = BytesOfBits(range.size());
  const Form form = count * sizeof(uint32_t) <= bit_bytes ? Form::kNumbers : Form::kBits;
  Put(bytes, static_cast<uint32_t>(count));
  Put(bytes + sizeof(uint32_t), static_cast<uint32_t>(form));
  std::byte* at = bytes + kHeadBytes;
  if (form == Form::kNumbers) {
    for (const uint64_t row : rows_) {
      Put(at, static_cast<uint32_t>(row - range.begin));
      at += sizeof(uint32_t);
    }
  } else {
    std::memset(at, 0, bit_bytes);
    for (const uint64_t row : rows_) at[(row - range.begin) / 8] |= std::byte{1} << (row - range.begin) % 8;
    at += bit_bytes;
  }
  const size_t part_bytes = static_cast<size_t>(width_) * sizeof(float);
  for (int64_t slot = 0; slot < values_ / width_; ++slot) {
    for (size_t row = 0; row < count; ++row, at += part_bytes) {
      std::memcpy(at, row_values_.data() + row * static_cast<size_t>(values_) + slot * width_, part_bytes);
    }
  }
  rows_.clear();
  row_values_.clear();
  DT_CHECK(static_cast<size_t>(at - bytes) <= kMaxRowPieceBytes, at - bytes);
  return static_cast<size_t>(at - bytes);
}

namespace {

// Reads which rows a piece has. Returns what is wrong; empty: nothing.
std::string ReadNumbers(net::TensorView bytes, Form form, RowRange piece, std::vector<uint64_t>* rows) {
  const std::byte* const at = bytes.data + kHeadBytes;
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
    if ((at[row / 8] >> row % 8 & std::byte{1}) == std::byte{0}) continue;
    if (row >= piece.size() || found == rows->size()) return "it has more bits than rows";
    (*rows)[found++] = piece.begin + row;
  }
  return found == rows->size() ? "" : fmt::format("it has {} bits for {} rows", found, rows->size());
}

}  // namespace

std::string ReadRowPiece(net::TensorView bytes, RowRange piece, int64_t width, int64_t values, RowRange range,
                         const VisitRow& visit) {
  if (bytes.size == 0) return std::string();
  if (bytes.size < kHeadBytes) return fmt::format("it has {} bytes", bytes.size);
  const auto count = size_t{Get<uint32_t>(bytes.data)};
  const auto form = static_cast<Form>(Get<uint32_t>(bytes.data + sizeof(uint32_t)));
  if (form != Form::kNumbers && form != Form::kBits) return "its form is unknown";
  if (count == 0 || count > piece.size()) {
    return fmt::format("it has {} of the {} rows of its range", count, piece.size());
  }
  const size_t number_bytes = form == Form::kNumbers ? count * sizeof(uint32_t) : BytesOfBits(piece.size());
  const size_t needed = kHeadBytes + number_bytes + count * static_cast<size_t>(values) * sizeof(float);
  if (bytes.size != needed) return fmt::format("it has {} bytes, not {}", bytes.size, needed);
  std::vector<uint64_t> rows(count);
  std::string wrong = ReadNumbers(bytes, form, piece, &rows);
  if (!wrong.empty()) return wrong;
  const std::byte* const first = bytes.data + kHeadBytes + number_bytes;
  const size_t part_bytes = static_cast<size_t>(width) * sizeof(float);
  std::vector<float> row_values(static_cast<size_t>(values));
  for (size_t row = 0; row < count; ++row) {
    if (rows[row] < range.begin || rows[row] >= range.end) continue;
    for (int64_t slot = 0; slot < values / width; ++slot) {
      std::memcpy(row_values.data() + slot * width,
                  first + (static_cast<size_t>(slot) * count + row) * part_bytes, part_bytes);
    }
    visit(rows[row], row_values.data());
  }
  return wrong;
}

}  // namespace dtrain
