// HashSnapshot: the rows of a hash table on one ps as they were at one moment, while updates go on: all, or
// those that were named since the base, with the numbers of those that left (HashStore::BeginBase). Taking it
// copies nothing but the bias. A row is kept before it changes for the first time, unless its piece is
// released already; a row that came later has a later step, by which it is left out. Pieces:
// table/hash_pieces.h. Owner: HashPart and its readers. Thread: BeforeUpdate() and Keep() the ps loop, the
// other calls any. The lock is held while some thousand rows are copied, and while rows are updated.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "trainer/shard/snapshot.h"
#include "trainer/table/hash_pieces.h"
#include "trainer/table/hash_store.h"

namespace dtrain {

class HashSnapshot : public Snapshot {
 public:
  // A block of rows and the number of its latest update.
  struct Block {
    RowRange rows;
    uint64_t step = 0;
    std::optional<uint64_t> base = std::nullopt;  // that of its latest update at the base; unset: all rows
  };

  // The max memory for rows as they were; where they take more the snapshot is given up: it has no pieces any
  // more.
  static constexpr size_t kMaxKeptBytes = size_t{512} << 20;

  // `rows` are read until every piece is released. `blocks`: all of them, in order. `width`: as of pieces.
  HashSnapshot(const HashStore& rows, const std::vector<Block>& blocks, int64_t width, size_t max_kept_bytes);

  int64_t piece_count() const override { return static_cast<int64_t>(pieces_.size()); }
  std::optional<Held> Read(int64_t piece, float* scratch) const override;
  // A piece behind the last one has no bytes: so a reader that does not know their number finds the end.
  std::optional<net::LentBytes> Lend(int64_t piece) const override;
  void ReleaseBefore(int64_t piece) override;
  SnapshotCost Cost() const override;
  void KeepForEvaluation() override { kept_rows_.emplace(); }
  bool GoBack(KeySpan keys, float* weights) const override;

  // Call this before rows change, and hold the lock until they have.
  std::unique_lock<std::mutex> BeforeUpdate() { return LockInTurn(); }
  // The number of the block's latest update.
  uint64_t StepOf(int64_t block) const { return blocks_[static_cast<size_t>(block)].step; }
  // Keeps a row as it is, if it has not changed since the moment; the lock is held.
  void Keep(const HashRow& row);

 private:
  struct HashPiece {
    RowRange rows;
    uint64_t step = 0;             // of its block
    std::optional<uint64_t> base;  // of its block
    size_t count = 0;              // of its rows at the moment
    HashRowList kept;              // rows that have changed, as they were
  };

  // Where the values of a kept row are.
  struct Place {
    size_t piece = 0;
    size_t values = 0;
    bool has_values = false;  // else it was a candidate
  };
  // What a place in the table of `kept_rows_` takes, about.
  static constexpr size_t kPlaceBytes = 64;

  const float* AsItWas(uint64_t row, uint64_t step, float* initial) const;
  void AddPieces(const Block& block);
  void ReleasePieces(int64_t end);
  bool Find(int64_t number) const;
  bool FindChanges(const HashPiece& piece) const;
  std::optional<size_t> Write(int64_t number, std::byte* bytes) const;
  std::unique_lock<std::mutex> LockInTurn() const;
  bool Has(int64_t piece) const { return piece >= released_ && piece < piece_count(); }

  const HashStore& rows_;
  const std::vector<Block> blocks_;
  const int64_t width_;
  const size_t max_kept_bytes_;

  mutable std::mutex next_;   // held by who waits for the other one
  mutable std::mutex mutex_;  // guards what follows, and reading `rows_`
  std::vector<HashPiece> pieces_;
  int64_t released_ = 0;  // all pieces before this one are released
  size_t kept_bytes_ = 0;
  std::optional<std::unordered_map<uint64_t, Place>> kept_rows_;  // for an evaluation; else unset
  SnapshotCost cost_;
  mutable std::vector<float> initial_;

  mutable std::mutex reading_;  // guards what follows: a reader's memory
  mutable HashRowList copied_;
  mutable std::vector<HashRow> found_;  // in `copied_`, in ascending order
  mutable std::vector<HashRow> changed_;
  mutable std::vector<uint64_t> left_;  // since the base
  mutable bool knows_left_ = false;     // `left_` has all
};

}  // namespace dtrain
