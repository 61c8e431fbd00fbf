// HashPieces: the units in which the rows of a hash table are written to a checkpoint and sent to its writer.
// A piece has rows that follow each other, with candidates for rows, of at most 1 MiB. How many there are and
// where they begin follows from the rows; a piece begins where its first row does.
//
// The bytes of a piece, little-endian:
//   uint32 count         rows
//   uint32 with_values   of which so many have values; in a delta also the bits kOfDelta and kWhole
//   in a delta           uint64 begin, end: it is about the rows from begin on, up to end
//   uint64 [count]       their numbers, ascending
//   uint64 [count]       the latest update that named each
//   uint32 [count]       of a candidate the updates that named it; 0: the row has values; 2^32 - 1, in a
//   delta:
//                        it was in the base, and has left
//   float32 [with_values, width]: the weights of those, then their other values as in row_pieces.h
// A piece of a delta has the rows that were named since the base, and those that left; all others are as in
// the base. With kWhole it has all rows of [begin, end) that are there, and those of the base do not count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "net/channel.h"
#include "trainer/table/hash_store.h"

namespace dtrain {

constexpr uint64_t kMaxHashStep = (uint64_t{1} << HashEntry::kStepBits) - 1;

// HashCover: what a piece of a delta is about.
struct HashCover {
  RowRange rows;
  bool whole = false;  // it has all of these rows that are there

  bool Has(uint64_t row) const { return whole && rows.begin <= row && row < rows.end; }
};

// The min number of bytes of a piece: one of a delta may have no rows.
constexpr size_t kMinHashPieceBytes = 2 * sizeof(uint32_t) + 2 * sizeof(uint64_t);

// The bytes of a piece of so many rows. `values`: of a row with its slots.
size_t HashPieceBytes(size_t rows, size_t with_values, int64_t values, bool of_delta = false);

// Writes a piece of rows in ascending order. `width`: values of a row without its slots. `bytes` has room for
// HashPieceBytes(). `cover`: of a delta; null: it is none. Returns how many it wrote.
size_t WriteHashPiece(const std::vector<HashRow>& rows, int64_t width, int64_t values, std::byte* bytes,
                      const HashCover* cover = nullptr);

using VisitHashRow = std::function<void(const HashRow&)>;

// Reads the bytes of a piece, any bytes, whose rows lie in `piece`. Calls `visit` for those in `range`, in
// ascending order; their values are valid during the call. The row of the bias always has values. `cover`:
// for a piece of a delta, which begins with `piece`, what it is about; null: it is none. Returns what is
// wrong with the bytes; empty: nothing. Nothing is visited of a piece that is wrong.
std::string ReadHashPiece(net::TensorView bytes, RowRange piece, int64_t width, int64_t values,
                          RowRange range, const VisitHashRow& visit, HashCover* cover = nullptr);

// Visits the rows of a window of a delta and of its base together in ascending order, as ReadHashPiece() does
// those of one of them. `delta`, `base`: the pieces in which they lie; without bytes: there are none.
struct HashPieceView {
  net::TensorView bytes;
  RowRange rows;
};
std::string ReadHashDelta(const HashPieceView& delta, const HashPieceView& base, int64_t width,
                          int64_t values, RowRange window, const VisitHashRow& visit);

// HashRowList: rows with their values. Owner: any. Thread: one.
class HashRowList {
 public:
  explicit HashRowList(int64_t values) : values_(static_cast<size_t>(values)) {}

  // Returns the place of its values.
  size_t Add(const HashRow& row);
  const float* At(size_t place) const { return row_values_.data() + place; }
  // Calls `visit(row)` in the order in which they came.
  template <typename Visit>
  void VisitEach(Visit&& visit) const {
    const float* values = row_values_.data();
    for (HashRow row : rows_) {
      if (row.count == 0) {
        row.values = values;
        values += values_;
      }
      visit(row);
    }
  }
  // Appends them to `rows`, whose values are those here.
  void AppendTo(std::vector<HashRow>* rows) const {
    VisitEach([&](const HashRow& row) { rows->push_back(row); });
  }
  void Clear() {
    rows_.clear();
    row_values_.clear();
  }
  bool empty() const { return rows_.empty(); }
  size_t value_rows() const { return row_values_.size() / values_; }
  size_t bytes() const { return rows_.capacity() * sizeof(HashRow) + row_values_.capacity() * sizeof(float); }

 private:
  size_t values_;                  // of a row
  std::vector<HashRow> rows_;      // without values
  std::vector<float> row_values_;  // of those that have some
};

// Where a piece begins: with its first row, one of a delta with the first row that it is about. Unset: it is
// of a delta and says nothing, so no file has it.
std::optional<uint64_t> BeginOf(net::TensorView bytes);

}  // namespace dtrain
