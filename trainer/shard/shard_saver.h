// ShardSaver: writes the shard file of a ps that sees checkpoint.dir, on a thread of its own from a snapshot
// of its range, while training goes on. One file at a time. A snapshot that is dropped ends the writing.
// Owner: PsServer, or CheckpointWriter on ps 0. Thread: the ps loop, which never waits here but at the end.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/shard/snapshot.h"

namespace dtrain {

class ShardSaver {
 public:
  // What became of the shard: why it could not be written, or the checksums of its pieces.
  struct Outcome {
    std::vector<uint64_t> checksums;
    std::string error;
  };

  ShardSaver(const Layout& layout, int ps, int64_t slots) : layout_(layout), ps_(ps), slots_(slots) {}
  ~ShardSaver();  // what is not complete is given up
  ShardSaver(const ShardSaver&) = delete;
  ShardSaver& operator=(const ShardSaver&) = delete;

  // Begins checkpoint `number` in `directory`, which is there. Nothing happens where that was begun already,
  // or an earlier one has not ended: to be called again.
  void Begin(uint64_t number, std::shared_ptr<Snapshot> snapshot, const std::string& directory);
  bool busy() const { return writing_.valid(); }
  // True once, when the writing has ended.
  bool Poll();
  // Null: it is not written yet, or another one was begun since.
  const Outcome* Of(uint64_t number) const { return number == number_ && outcome_ ? &*outcome_ : nullptr; }

 private:
  Outcome Write(Snapshot& snapshot, const std::string& directory) const;

  const Layout& layout_;
  const int ps_;
  const int64_t slots_;
  uint64_t number_ = 0;
  std::shared_ptr<Snapshot> snapshot_;  // shared with ParameterShard and the thread
  std::future<Outcome> writing_;
  std::optional<Outcome> outcome_;
};

// Whether a ps has more pieces than it can tell the checksums of in one message. Its part is pulled by ps 0.
bool HasTooManyPieces(const Layout& layout, int ps, int64_t slots);

}  // namespace dtrain
