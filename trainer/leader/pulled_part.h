// PulledPart: ps 0's side of a save of a ps that does not see checkpoint.dir: it asks that ps for the pieces
// of its range, of which it holds kOpenPieces at most, and a thread appends them to the shard file in order.
// Owner: CheckpointWriter, for one ps in one save. Thread: the ps loop, which never waits here but at the
// end.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/codec.h"
#include "trainer/model/layout.h"
#include "trainer/shard/shard_saver.h"

namespace dtrain {

class PulledPart {
 public:
  // `number`: of the save. `ask`: the ps for a piece; it may get lost.
  PulledPart(const Layout& layout, int ps, int64_t slots, uint64_t number, const std::string& directory,
             std::function<void(int64_t piece)> ask);
  ~PulledPart();  // what is not complete is given up
  PulledPart(const PulledPart&) = delete;
  PulledPart& operator=(const PulledPart&) = delete;

  // A piece that was asked for. One that is not what was asked for is dropped.
  void OnPiece(net::Message message);
  // Asks for what is next, and again for what has not come.
  void Tick(TimePoint now);
  // The thread ends when the disk lets it.
  void GiveUp();
  bool ended() const;
  // What became of the shard, once; unset: not yet.
  std::optional<ShardSaver::Outcome> Poll();

 private:
  ShardSaver::Outcome Write(const std::string& directory);
  // The next in order; unset: given up.
  std::optional<net::Message> WaitForPiece();
  bool Fits(const wire::Piece& piece, net::TensorView values) const;

  const Layout& layout_;
  const int ps_;
  const int64_t slots_;
  const uint64_t number_;
  const std::function<void(int64_t)> ask_;
  const int64_t count_;
  int64_t asked_ = 0;  // pieces before it have been asked for; the ps loop's
  TimePoint ask_again_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<int64_t, net::Message> here_;  // pieces that wait for the thread
  int64_t written_ = 0;
  bool given_up_ = false;
  std::future<ShardSaver::Outcome> writing_;  // the last member: it waits for the thread before the rest goes
};

}  // namespace dtrain
