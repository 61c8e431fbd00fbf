// PulledPart: writes what a ps that does not see checkpoint.dir has of a checkpoint. It asks that ps for the
// pieces of its parts, holds kOpenPieces of them at most, and appends them in order to the shard file on a
// thread.
// Owner: CheckpointWriter. Thread: the ps loop, which waits for the disk only in the destructor.
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
#include "trainer/checkpoint/part_pieces.h"
#include "trainer/model/layout.h"
#include "trainer/shard/shard_saver.h"

namespace dtrain {

class PulledPart {
 public:
  // `number`: of the checkpoint. `ask`: asks the ps for a piece; the question may get lost.
  PulledPart(const Layout& layout, int ps, SlotCounts slots, uint64_t number, const std::string& directory,
             std::function<void(Piece piece)> ask);
  // Gives up a part that is not complete.
  ~PulledPart();
  PulledPart(const PulledPart&) = delete;
  PulledPart& operator=(const PulledPart&) = delete;

  // Takes a piece. Drops one that was not asked for.
  void OnPiece(net::Message message);
  // Asks for the next pieces, and again for those that have not come.
  void Tick(TimePoint now);
  // Gives the part up. The thread ends when the disk lets it.
  void GiveUp();
  bool ended() const;
  // The outcome, once; unset until then.
  std::optional<ShardSaver::Outcome> Poll();

 private:
  ShardSaver::Outcome Write(const std::string& directory);
  // The next piece in order; unset: the part is given up.
  std::optional<net::Message> WaitForPiece();
  void GoTo(Piece piece);
  bool Fits(const wire::Piece& piece, net::TensorView values) const;

  const Layout& layout_;
  const int ps_;
  const SlotCounts slots_;
  const uint64_t number_;
  const std::function<void(Piece)> ask_;
  const PartsOfPs parts_;
  Piece asked_;  // all pieces before this one have been asked for; used by the ps loop
  TimePoint ask_again_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::map<int64_t, net::Message> here_;  // pieces that wait for the thread
  Piece next_;  // all pieces before this one are written; those that are here are of its part
  bool given_up_ = false;
  // The last member: its destructor waits for the thread, which uses the others.
  std::future<ShardSaver::Outcome> writing_;
};

}  // namespace dtrain
