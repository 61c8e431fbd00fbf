// Snapshot: the weights and optimizer slots of a ps as they were at one moment, while training goes on, in
// pieces. RangeSnapshot: of a range of the flat vector; rows of a table: table_snapshot.h.
// Taking one of a range copies nothing: it shares the weights, since a shared version is never written again
// (net/lent_buffer.h), and a block of a slot is copied before the first update of it. A piece that is
// released before its update needs no copy, so a ps that reads the pieces itself, in order, releases each to
// stay ahead of the updates. Of the pieces for ps 0 the last few that it has asked for are kept, since it may
// ask again. Pieces: model/layout.h.
// Owner: Part and its readers. Thread: BeforeUpdate() the ps loop, the other calls any. The lock is
// held for the copy of one block at most.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/view.h"
#include "net/channel.h"
#include "net/lent_buffer.h"
#include "trainer/model/layout.h"
#include "trainer/table/key_list.h"

namespace dtrain {

// SnapshotBuffers: the buffers of a snapshot: for each block that is updated before it is read, one for the
// weights and one for each slot. They are kept for the next checkpoint, because the first touch of memory
// costs several times what writing it again costs. So a ps keeps as many as its checkpoints have needed at
// once, at most one copy of the weights and slots. Owner: Part and its snapshots. Thread: any.
class SnapshotBuffers {
 public:
  // `bytes`: of each buffer. `max`: the number needed at once at most.
  SnapshotBuffers(size_t bytes, size_t max) : bytes_(bytes), max_(max) {}

  // A buffer with one owner; its contents are undefined.
  net::LentBuffer Take();
  // Keeps the buffer, unless it is still lent.
  void Give(net::LentBuffer buffer);
  // The buffers kept and not taken.
  size_t count() const;

 private:
  const size_t bytes_;
  const size_t max_;
  mutable std::mutex mutex_;
  std::vector<net::LentBuffer> buffers_;
};

// What a snapshot of a table has cost the updates beside it.
struct SnapshotCost {
  size_t max_bytes = 0;       // of rows as they were, at the same time
  double waited_s = 0;        // that updates waited, all together
  double longest_wait_s = 0;  // of one update, with the copying of its rows
  bool slowed = false;        // updates waited for the sake of the memory
  bool given_up = false;      // the memory came to its limit
};

// Thread: any.
class Snapshot {
 public:
  // The bytes of a piece and the buffer that keeps them; no buffer: the bytes are in the reader's scratch.
  struct Held {
    net::TensorView bytes;
    std::optional<net::LentBuffer> hold;
  };

  virtual ~Snapshot() = default;
  virtual int64_t piece_count() const = 0;
  // Reads a piece; unset: it is released, or there is no such piece. `scratch` has room for kBlockValues, for
  // values that have no copy. The result outlives the snapshot.
  virtual std::optional<Held> Read(int64_t piece, float* scratch) const = 0;
  // Lends a piece; send it exactly once.
  virtual std::optional<net::LentBytes> Lend(int64_t piece) const = 0;
  // Releases all pieces before this one: their memory is given back, and updates no longer copy them.
  virtual void ReleaseBefore(int64_t piece) = 0;
  void Release() { ReleaseBefore(piece_count()); }
  virtual SnapshotCost Cost() const { return {}; }
  // A thread reads all pieces: from now on updates wait where the rows as they were take much memory. They
  // must not where the ps loop itself reads: an update would wait for itself. Thread: the ps loop.
  virtual void LetUpdatesWait() {}
  // An evaluation reads rows before the snapshot is written: from now on what updates change is kept of rows
  // that a delta leaves out too. Call it when the snapshot is taken. Thread: the ps loop.
  virtual void KeepForEvaluation() {}
  // Sets the weights of rows of a block, [keys, width] as they are now, to what they were. False: the rows
  // are released. Thread: the ps loop.
  virtual bool GoBack(KeySpan /*keys*/, float* /*weights*/) const { return false; }
};

// Snapshots: those of a part that were not dropped. They read the part's memory, so this is a member behind
// it. Thread: the ps loop.
template <typename Kind>
class Snapshots {
 public:
  Snapshots() = default;
  ~Snapshots() { DropAll(); }
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  std::shared_ptr<Kind> Add(std::shared_ptr<Kind> taken) { return all_.emplace_back(std::move(taken)); }
  void Drop(const std::shared_ptr<Snapshot>& snapshot) {
    snapshot->Release();
    all_.erase(std::remove(all_.begin(), all_.end(), snapshot), all_.end());
  }
  void DropAll() {
    for (const std::shared_ptr<Kind>& each : all_) each->Release();
    all_.clear();
  }
  bool empty() const { return all_.empty(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<std::shared_ptr<Kind>> all_;
};

class RangeSnapshot : public Snapshot {
 public:
  // `weights`: shares of the blocks. `slots`: of the whole range; read until every piece is released.
  // `buffers`: for the copies, each of the size of the largest block.
  RangeSnapshot(Range range, std::vector<net::LentBuffer> weights, std::vector<gpu::Span<const float>> slots,
                std::shared_ptr<SnapshotBuffers> buffers);

  // A snapshot that is copied already: `pieces` in order, of a range with `slots` slots.
  RangeSnapshot(Range range, int64_t slots, std::vector<net::LentBuffer> pieces,
                std::shared_ptr<SnapshotBuffers> buffers);

  int64_t piece_count() const override { return static_cast<int64_t>(kept_.size()); }
  // The place of the piece in the range.
  RangePiece At(int64_t piece) const {
    return RangePieceAt(range_, static_cast<int64_t>(slots_.size()), piece);
  }

  std::optional<Held> Read(int64_t piece, float* scratch) const override;
  std::optional<net::LentBytes> Lend(int64_t piece) const override;
  void ReleaseBefore(int64_t piece) override;

  // Call this before the slots of a block change.
  void BeforeUpdate(int64_t block);

 private:
  size_t BytesOf(int64_t piece) const {
    return static_cast<size_t>(At(piece).elements.size()) * sizeof(float);
  }
  bool Has(int64_t piece) const { return piece >= released_ && piece < piece_count(); }
  void CopySlot(int64_t piece, float* to) const;

  const Range range_;
  const std::vector<gpu::Span<const float>> slots_;
  const std::shared_ptr<SnapshotBuffers> buffers_;
  std::vector<bool> updated_;                         // by block; used by the ps loop
  mutable std::mutex mutex_;                          // guards the members below, and reading `slots_`
  std::vector<std::optional<net::LentBuffer>> kept_;  // by piece; unset: released, or still in `slots_`
  int64_t released_ = 0;                              // all pieces before this one are released
};

}  // namespace dtrain
