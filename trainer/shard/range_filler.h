// RangeFiller: fills the range of a ps with what the run begins with, as ps 0 orders it: initial values,
// which are made here, or the range's part of a checkpoint. A ps that sees the checkpoint reads its part; any
// other gets the pieces from ps 0. Every byte is verified by whoever reads it; all ps together read all of
// it. The values of a checkpoint count when ps 0 says so: every ps has its own then. Work is done in turns of
// some milliseconds, so that the ps is heard meanwhile. Owner: PsServer. Thread: the ps loop. Messages:
// docs/wire.md, Fill, Filled, ReadPiece.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/codec.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/shard/parameter_shard.h"

namespace dtrain {

// What ps 0 orders.
struct FillOrder {
  uint64_t number = 0;     // from 1; of several the largest counts
  std::string checkpoint;  // its name in checkpoint.dir, or a path; empty: initial values
  int64_t step = 0;        // its global step
  uint64_t manifest = 0;   // ManifestChecksum() of it
  bool keep = false;       // every ps has its values: they count
};

// What became of it.
struct FillOutcome {
  uint64_t number = 0;
  std::string error;  // empty: the range is filled
  bool kept = false;
};

// Tells two checkpoints of one name apart.
uint64_t ManifestChecksum(const Manifest& manifest);

// How many pieces a task has open at another one: what it holds in memory, of 1 MiB each.
constexpr int64_t kOpenPieces = 8;
// How often a piece that has not come is asked for again.
constexpr milliseconds kAskForPieceAgain{500};

class RangeFiller {
 public:
  struct Parts {
    const Config& config;
    const Layout& layout;
    int ps;
    ParameterShard& shard;
    Logger& log;
    std::function<bool()> sees_directory;                          // of ps 0; not asked on ps 0
    std::function<void(uint64_t number, int64_t piece)> ask;       // ps 0 for a piece; it may get lost
    std::function<void(const FillOutcome& outcome)> tell_outcome;  // to ps 0; it may get lost
  };
  explicit RangeFiller(Parts parts);

  // An order that has been carried out is answered again, and nothing else happens.
  void Take(const FillOrder& order);
  // A piece that was asked for. One that is not what was asked for is dropped.
  void OnPiece(const wire::Piece& piece, net::TensorView values);
  // Works for some milliseconds, tells what is to be told, and asks again for what has not come.
  void Turn(TimePoint now);
  // There is work for the next turn.
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
  void End(const std::string& error);

  const Parts parts_;
  const std::vector<std::string> slots_;  // the optimizer's
  State state_ = State::kIdle;
  FillOrder order_;
  FillOutcome outcome_;
  bool tells_ = false;  // the outcome is to be told
  std::vector<Piece> pieces_;
  size_t next_ = 0;                           // of the pieces: those before it are here
  std::unique_ptr<CheckpointReader> reader_;  // while it reads
  std::vector<float> values_;
  std::vector<bool> here_;  // while it fetches: by piece
  size_t asked_ = 0;        // pieces before it have been asked for
  TimePoint ask_again_;
};

}  // namespace dtrain
