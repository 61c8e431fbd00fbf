// RangeFiller: fills the range of a ps as ps 0 orders: with initial values, made here, or with its part of a
// checkpoint. A ps that sees the checkpoint reads its part; any other gets the pieces from ps 0. The reader
// of a byte verifies it, and all ps together read every byte. Restored values count only when ps 0 says that
// every ps has its own. It works in turns of some milliseconds, so that the ps goes on answering.
// Owner: PsServer. Thread: the ps loop. Messages: docs/wire.md, Orders to a ps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/channel.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/part_pieces.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/shard/shard.h"

namespace dtrain {
namespace wire {
struct Piece;
}

// An order of ps 0.
struct FillOrder {
  uint64_t number = 0;          // from 1; the largest number counts
  std::string checkpoint;       // a name in checkpoint.dir, or a path; empty: initial values
  int64_t step = 0;             // the global step that the run is at with it
  uint64_t manifest = 0;        // its Manifest::checksum
  bool keep = false;            // every ps has its values, and they count
  bool begins = false;          // the run begins with it (checkpoint.start_from)
  int64_t earlier_updates = 0;  // that its slots have had before global step 0; below 2^62
  int64_t decay_steps = 0;      // what schedule.decay_steps: auto is, below 2^62; 0: the config has a number
};

// The result of an order.
struct FillOutcome {
  uint64_t number = 0;
  std::string error;  // empty: the range is filled
  bool kept = false;
};

// The max number of pieces, of 1 MiB each, that a task has asked for and not received: its memory for them.
constexpr int64_t kOpenPieces = 8;
static_assert(kOpenPieces * kBlockValues * sizeof(float) <= 64 << 20, "what a part costs ps 0 at most");
// How soon a missing piece is asked for again.
constexpr milliseconds kAskForPieceAgain{500};

class RangeFiller {
 public:
  struct Parts {
    const Config& config;
    const Layout& layout;
    int ps;
    Shard& shard;
    Logger& log;
    std::function<bool()>
        sees_directory;  // whether this ps sees the checkpoint.dir of ps 0; not called on ps 0
    std::function<void(uint64_t number, Piece piece)> ask;         // asks ps 0 for a piece; may get lost
    std::function<void(const FillOutcome& outcome)> tell_outcome;  // tells ps 0; may get lost
  };
  explicit RangeFiller(Parts parts);

  // Carries out an order. For one that has been carried out it only tells the outcome again.
  void Take(const FillOrder& order);
  // Takes a piece. Drops one that was not asked for.
  void OnPiece(const wire::Piece& piece, net::TensorView values);
  // Works for some milliseconds, tells an outcome that is due, and repeats unanswered questions.
  void Turn(TimePoint now);
  // There is work for the next Turn().
  bool busy() const { return state_ == State::kMaking || state_ == State::kReading || tells_; }

 private:
  enum class State { kIdle, kMaking, kReading, kFetching, kDone };

  void Begin();
  std::string PathHere() const;
  bool OpenHere(const std::string& path);
  void BeginToFetch();
  void AskForMore(TimePoint now);
  void ReadSome();
  void ReadNext();
  void GoTo(size_t part);
  bool has_all() const { return next_.part == pieces_.size(); }
  void End(const std::string& error);

  const Parts parts_;
  const ModelSlots slots_;
  const PartsOfPs pieces_;  // by part
  State state_ = State::kIdle;
  FillOrder order_;
  FillOutcome outcome_;
  bool tells_ = false;                        // the outcome must be told
  Piece next_;                                // all pieces before this one are here
  int64_t count_ = 0;                         // of the pieces of its part
  std::unique_ptr<CheckpointReader> reader_;  // set while it reads
  std::vector<std::byte> read_;               // a piece
  std::vector<bool> here_;                    // by piece of the part, while it fetches
  int64_t asked_ = 0;                         // all pieces of the part before this one have been asked for
  TimePoint ask_again_;
};

}  // namespace dtrain
