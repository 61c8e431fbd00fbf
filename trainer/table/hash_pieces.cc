#include "trainer/table/hash_pieces.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace dtrain {
namespace {

constexpr size_t kHeadBytes = 2 * sizeof(uint32_t);
constexpr size_t kCoverBytes = 2 * sizeof(uint64_t);
constexpr size_t kRowBytes = 2 * sizeof(uint64_t) + sizeof(uint32_t);
static_assert(kMinHashPieceBytes == kHeadBytes + kCoverBytes && kMinHashPieceBytes < kHeadBytes + kRowBytes);
constexpr uint32_t kOfDelta = uint32_t{1} << 31, kWhole = uint32_t{1} << 30;  // beside the number with values
constexpr uint64_t kBiasRow = ~uint64_t{0} - 1;  // of every hash table (TableLayout)

template <typename Number>
void Put(Number number, std::byte** at) {
  std::memcpy(*at, &number, sizeof number);
  *at += sizeof number;
}
template <typename Number>
Number Get(const std::byte* at, size_t index = 0) {
  Number number;
  std::memcpy(&number, at + index * sizeof number, sizeof number);
  return number;
}

// Where the parts of a piece begin.
struct Parts {
  Parts(const std::byte* bytes, size_t rows, bool of_delta)
      : numbers(bytes + kHeadBytes + (of_delta ? kCoverBytes : 0)),
        steps(numbers + rows * sizeof(uint64_t)),
        counts(steps + rows * sizeof(uint64_t)),
        values(counts + rows * sizeof(uint32_t)) {}
  const std::byte* numbers;
  const std::byte* steps;
  const std::byte* counts;
  const std::byte* values;
};

std::string RowProblem(const Parts& parts, size_t rows, size_t with_values, RowRange piece,
                       const HashCover* cover) {
  uint64_t next = piece.begin;
  size_t found = 0;
  for (size_t i = 0; i < rows; ++i) {
    const auto row = Get<uint64_t>(parts.numbers, i);
    if (row < next || row >= piece.end) {
      return fmt::format("row {} of it is {}, not from {} to {}", i, row, next, piece.end - 1);
    }
    next = row + 1;
    const auto count = Get<uint32_t>(parts.counts, i);
    found += count == 0 ? 1 : 0;
    const bool left = count == HashRow::kLeft && cover != nullptr && !cover->whole;
    if ((count > HashStore::kMaxAdmitAfter && !left) || Get<uint64_t>(parts.steps, i) > kMaxHashStep) {
      return fmt::format("row {} of it has a count or a step that is none", i);
    }
    if (row == kBiasRow && count != 0) return "it has no values of the bias";
  }
  return found == with_values ? "" : fmt::format("it has values of {} rows, not {}", with_values, found);
}

// Reads what a piece of a delta is about. Empty: it is right.
std::string ReadCover(const std::byte* at, uint32_t form, RowRange piece, HashCover* cover) {
  *cover = {{Get<uint64_t>(at), Get<uint64_t>(at, 1)}, (form & kWhole) != 0};
  if (piece.begin <= cover->rows.begin && cover->rows.begin < cover->rows.end && cover->rows.end <= piece.end)
    return std::string();
  return fmt::format("it is about the rows from {} to {}, and may be about those from {} to {}",
                     cover->rows.begin, cover->rows.end, piece.begin, piece.end);
}

}  // namespace

size_t HashPieceBytes(size_t rows, size_t with_values, int64_t values, bool of_delta) {
  return kHeadBytes + (of_delta ? kCoverBytes : 0) + rows * kRowBytes +
         with_values * static_cast<size_t>(values) * sizeof(float);
}

size_t WriteHashPiece(const std::vector<HashRow>& rows, int64_t width, int64_t values, std::byte* bytes,
                      const HashCover* cover) {
  std::byte* at = bytes;
  uint32_t with_values = 0;
  for (const HashRow& row : rows) with_values += row.values != nullptr ? 1 : 0;
  Put(static_cast<uint32_t>(rows.size()), &at);
  Put(with_values | (cover == nullptr ? 0 : kOfDelta) | (cover != nullptr && cover->whole ? kWhole : 0), &at);
  if (cover != nullptr) {
    Put(cover->rows.begin, &at);
    Put(cover->rows.end, &at);
  }
  for (const HashRow& row : rows) Put(row.row, &at);
  for (const HashRow& row : rows) Put(row.step, &at);
  for (const HashRow& row : rows) Put(row.count, &at);
  for (int64_t first = 0; first < values; first += width) {
    const size_t part_bytes = static_cast<size_t>(std::min(width, values - first)) * sizeof(float);
    for (const HashRow& row : rows) {
      if (row.values == nullptr) continue;
      std::memcpy(at, row.values + first, part_bytes);
      at += part_bytes;
    }
  }
  return static_cast<size_t>(at - bytes);
}

size_t HashRowList::Add(const HashRow& row) {
  const size_t place = row_values_.size();
  rows_.push_back({row.row, row.step, row.count, nullptr});
  if (row.values != nullptr) row_values_.insert(row_values_.end(), row.values, row.values + values_);
  return place;
}

// Behind the head of a delta its first row, of any other its first number.
std::optional<uint64_t> BeginOf(net::TensorView bytes) {
  const auto count = Get<uint32_t>(bytes.data), form = Get<uint32_t>(bytes.data, 1);
  if ((form & kOfDelta) != 0 && (form & kWhole) == 0 && count == 0) return std::nullopt;
  return Get<uint64_t>(bytes.data + kHeadBytes);
}

std::string ReadHashPiece(net::TensorView bytes, RowRange piece, int64_t width, int64_t values,
                          RowRange range, const VisitHashRow& visit, HashCover* cover) {
  const bool of_delta = cover != nullptr;
  if (bytes.size < HashPieceBytes(0, 0, values, of_delta)) return fmt::format("it has {} bytes", bytes.size);
  const uint32_t form = of_delta ? Get<uint32_t>(bytes.data, 1) ^ kOfDelta : Get<uint32_t>(bytes.data, 1);
  const auto rows = size_t{Get<uint32_t>(bytes.data)}, with_values = size_t{form & ~kWhole};
  if ((form & kOfDelta) != 0 || (!of_delta && (form & kWhole) != 0)) return "its form is unknown";
  const size_t needed = HashPieceBytes(rows, with_values, values, of_delta);
  if (bytes.size != needed) return fmt::format("it has {} bytes, not {}", bytes.size, needed);
  std::string wrong;
  if (of_delta) wrong = ReadCover(bytes.data + kHeadBytes, form, piece, cover);
  const Parts parts(bytes.data, rows, of_delta);
  if (wrong.empty()) {
    wrong = RowProblem(parts, rows, with_values, of_delta ? cover->rows : piece, cover);
  }
  if (!wrong.empty()) return wrong;
  std::vector<float> row_values(static_cast<size_t>(values));
  size_t at = 0;  // among those with values
  for (size_t i = 0; i < rows; ++i) {
    HashRow row{Get<uint64_t>(parts.numbers, i), Get<uint64_t>(parts.steps, i),
                Get<uint32_t>(parts.counts, i), nullptr};
    const size_t here = at;
    at += row.count == 0 ? 1 : 0;
    if (row.row < range.begin || row.row >= range.end) continue;
    if (row.count == 0) {
      for (int64_t first = 0; first < values; first += width) {
        const auto part = static_cast<size_t>(std::min(width, values - first));
        std::memcpy(row_values.data() + first,
                    parts.values + (static_cast<size_t>(first) * with_values + here * part) * sizeof(float),
                    part * sizeof(float));
      }
      row.values = row_values.data();
    }
    visit(row);
  }
  return wrong;
}

std::string ReadHashDelta(const HashPieceView& delta, const HashPieceView& base, int64_t width,
                          int64_t values, RowRange window, const VisitHashRow& visit) {
  HashCover cover;
  HashRowList list(values);
  std::string wrong;
  if (delta.bytes.size > 0) {
    wrong = ReadHashPiece(
        delta.bytes, delta.rows, width, values, window, [&](const HashRow& row) { list.Add(row); }, &cover);
  }
  if (!wrong.empty()) return wrong;
  std::vector<HashRow> changed;
  list.AppendTo(&changed);
  size_t next = 0;
  const auto visit_before = [&](uint64_t end) {
    for (; next < changed.size() && changed[next].row < end; ++next) {
      if (changed[next].count != HashRow::kLeft) visit(changed[next]);
    }
  };
  if (base.bytes.size > 0) {
    wrong = ReadHashPiece(base.bytes, base.rows, width, values, window, [&](const HashRow& row) {
      visit_before(row.row);
      const bool named = next < changed.size() && changed[next].row == row.row;
      if (!named && !cover.Has(row.row)) visit(row);
    });
  }
  if (wrong.empty()) visit_before(window.end);
  return wrong.empty() ? wrong : "in its base " + wrong;
}

}  // namespace dtrain
