// ShardSaver: writes the shard file of a ps that sees checkpoint.dir, from a snapshot, on a
// thread while training goes on; one file at a time. Dropping the snapshot ends the writing.
// Owner: SnapshotKeeper. Thread: the ps loop, which waits for the disk only in the destructor.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/model/layout.h"
#include "trainer/shard/shard.h"

namespace dtrain {

class ShardSaver {
 public:
  // What was written, or why the file could not be written.
  struct Outcome {
    WrittenPart part;
    std::string error;
  };

  ShardSaver(const Layout& layout, int ps, SlotCounts slots) : layout_(layout), ps_(ps), slots_(slots) {}
  // Gives up a file that is not complete.
  ~ShardSaver();
  ShardSaver(const ShardSaver&) = delete;
  ShardSaver& operator=(const ShardSaver&) = delete;

  // Starts to write checkpoint `number` into `directory`, which exists. Does nothing if this number was
  // started already, or if an earlier one has not ended; call it again then.
  void Begin(uint64_t number, std::shared_ptr<ShardSnapshot> snapshot, const std::string& directory);
  bool busy() const { return writing_.valid(); }
  // True once, when writing has ended.
  bool Poll();
  // The outcome of checkpoint `number`; null: it has not ended, or another one was started since.
  const Outcome* Of(uint64_t number) const { return number == number_ && outcome_ ? &*outcome_ : nullptr; }

 private:
  Outcome Write(ShardSnapshot& snapshot, const std::string& directory) const;

  const Layout& layout_;
  const int ps_;
  const SlotCounts slots_;
  uint64_t number_ = 0;
  std::shared_ptr<ShardSnapshot> snapshot_;  // shared with the thread
  std::future<Outcome> writing_;
  std::optional<Outcome> outcome_;
};

// Whether the checksums of a ps's pieces do not fit into one message. ps 0 pulls the part of such a ps.
bool HasTooManyPieces(const Layout& layout, int ps, SlotCounts slots);

}  // namespace dtrain
