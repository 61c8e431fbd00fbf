#include "trainer/table/hash_pieces.h"

#include <fmt/core.h>

#include <cstring>

namespace dtrain {
namespace {

constexpr size_t kHeadBytes = 2 * sizeof(uint32_t);
constexpr size_t kRowBytes = 2 * sizeof(uint64_t) + sizeof(uint32_t);
static_assert(kMinHashPieceBytes == kHeadBytes + kRowBytes);
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
  Parts(const std::byte* bytes, size_t rows)
      : numbers(bytes + kHeadBytes),
        steps(numbers + rows * sizeof(uint64_t)),
        counts(steps + rows * sizeof(uint64_t)),
        values(counts + rows * sizeof(uint32_t)) {}
  const std::byte* numbers;
  const std::byte* steps;
  const std::byte* counts;
  const std::byte* values;
};

std::string RowProblem(const Parts& parts, size_t rows, size_t with_values, RowRange piece) {
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
    if (count > HashStore::kMaxAdmitAfter || Get<uint64_t>(parts.steps, i) > kMaxHashStep) {
      return fmt::format("row {} of it has a count or a step that is none", i);
    }
    if (row == kBiasRow && count != 0) return "it has no values of the bias";
  }
  return found == with_values ? "" : fmt::format("it has values of {} rows, not {}", with_values, found);
}

}  // namespace

size_t HashPieceBytes(size_t rows, size_t with_values, int64_t values) {
  return kHeadBytes + rows * kRowBytes + with_values * static_cast<size_t>(values) * sizeof(float);
}

size_t WriteHashPiece(const std::vector<HashRow>& rows, int64_t width, int64_t values, std::byte* bytes) {
  std::byte* at = bytes;
  uint32_t with_values = 0;
  for (const HashRow& row : rows) with_values += row.values != nullptr ? 1 : 0;
  Put(static_cast<uint32_t>(rows.size()), &at);
  Put(with_values, &at);
  for (const HashRow& row : rows) Put(row.row, &at);
  for (const HashRow& row : rows) Put(row.step, &at);
  for (const HashRow& row : rows) Put(row.count, &at);
  const size_t part_bytes = static_cast<size_t>(width) * sizeof(float);
  for (int64_t first = 0; first < values; first += width) {
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

void HashRowList::AppendTo(std::vector<HashRow>* rows) const {
  const float* values = row_values_.data();
  for (const HashRow& row : rows_) {
    rows->push_back(row);
    if (row.count != 0) continue;
    rows->back().values = values;
    values += values_;
  }
}

uint64_t FirstRowOf(net::TensorView bytes) { return Get<uint64_t>(bytes.data + kHeadBytes); }

std::string ReadHashPiece(net::TensorView bytes, RowRange piece, int64_t width, int64_t values,
                          RowRange range, const VisitHashRow& visit) {
  if (bytes.size < kHeadBytes) return fmt::format("it has {} bytes", bytes.size);
  const auto rows = size_t{Get<uint32_t>(bytes.data)}, with_values = size_t{Get<uint32_t>(bytes.data, 1)};
  const size_t needed = HashPieceBytes(rows, with_values, values);
  if (bytes.size != needed) return fmt::format("it has {} bytes, not {}", bytes.size, needed);
  const Parts parts(bytes.data, rows);
  std::string wrong = RowProblem(parts, rows, with_values, piece);
  if (!wrong.empty()) return wrong;
  const size_t part_bytes = static_cast<size_t>(width) * sizeof(float);
  std::vector<float> row_values(static_cast<size_t>(values));
  size_t at = 0;  // among those with values
  for (size_t i = 0; i < rows; ++i) {
    HashRow row{Get<uint64_t>(parts.numbers, i), Get<uint64_t>(parts.steps, i),
                Get<uint32_t>(parts.counts, i), nullptr};
    const size_t here = at;
    at += row.count == 0 ? 1 : 0;
    if (row.row < range.begin || row.row >= range.end) continue;
    if (row.count == 0) {
      for (int64_t slot = 0; slot < values / width; ++slot) {
        std::memcpy(row_values.data() + slot * width,
                    parts.values + (static_cast<size_t>(slot) * with_values + here) * part_bytes, part_bytes);
      }
      row.values = row_values.data();
    }
    visit(row);
  }
  return wrong;
}

}  // namespace dtrain
