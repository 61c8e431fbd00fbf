// Restore: what a run begins with, or goes on from: ps 0 chooses the checkpoint (checkpoint.resume, or the
// newest complete one of a run that goes on) or initial values, has every ps fill its range, and takes the
// next older checkpoint where any ps finds that one damaged. A ps that does not see a checkpoint gets its
// pieces from here. Owner: PsServer on ps 0. Thread: the ps loop. Messages: docs/wire.md, Fill, Filled,
// ReadPiece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/codec.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/config.h"
#include "trainer/data/positions.h"
#include "trainer/model/layout.h"
#include "trainer/peer/form_message.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"
#include "trainer/shard/range_filler.h"

namespace dtrain {

// What every ps has its values of.
struct StartedFrom {
  std::string path;  // of the checkpoint; empty: initial values
  int64_t step = 0;  // its global step
  Positions positions;
  std::optional<InputForm> inputs;  // of the data as the run takes it; unset: not known
  FittedScale scale;                // that all workers use; empty: not scaled, or not known
};

class Restore {
 public:
  struct Parts {
    const Config& config;
    const Layout& layout;
    TaskTable& members;
    Outbox& outbox;
    const RunHistory& history;
    const CheckpointDirectory* directory;                  // null: no checkpoint.dir
    std::function<void(const FillOrder& order)> fill_own;  // the RangeFiller of ps 0
    std::function<void(const StartedFrom& from)> done;     // every ps has its values; called once
    Logger& log;
  };
  explicit Restore(Parts parts);

  // `again`: the run had begun, and goes on from its newest checkpoint whatever checkpoint.resume says.
  // `data`: what a worker says of its data; unset: nothing. This and all below: UserError where the
  // checkpoint is damaged or of another model, IoError where a run that had begun has none that it can go on
  // from.
  void Begin(bool again, std::optional<DataFacts> data);
  // What became of an order at a ps, 0 included.
  void OnOutcome(size_t ps, const FillOutcome& outcome);
  // A ps asks for a piece. Not answered where it is not to be had: the ps asks again.
  void OnReadPiece(const Member& ps, const wire::ReadPiece& question);
  void Tick(TimePoint now);

 private:
  enum class Phase { kIdle, kFilling, kKeeping };
  struct Candidate {
    std::string name;  // in checkpoint.dir, or the path of checkpoint.resume
    std::string path;
  };

  std::vector<Candidate> Choose();
  std::vector<Candidate> ListDirectory();
  void CheckNoneIsMissing(const std::vector<ListedCheckpoint>& listed) const;
  [[noreturn]] void NothingToGoBackTo() const;
  [[noreturn]] void NoneIsComplete() const;
  void TryNext();
  void Open(const Candidate& candidate);
  void Skip(const std::string& problem);
  void OrderAll();
  void Order(size_t ps);
  void GoOnWhenAllHave();
  void Finish();
  void TakeCheckpoint(StartedFrom* from) const;
  FittedScale ScaleFor(const std::string& path, const FittedScale& saved) const;

  const Parts parts_;
  const std::vector<std::string> slots_;  // the optimizer's
  Phase phase_ = Phase::kIdle;
  bool again_ = false;
  std::optional<DataFacts> data_;
  std::vector<Candidate> candidates_;  // the newest first
  bool named_ = false;                 // by checkpoint.resume: there is no other
  size_t next_ = 0;
  FillOrder order_;
  std::unique_ptr<CheckpointReader> reader_;  // of the one in hand; null: initial values
  std::vector<bool> have_;                    // by ps: it has carried out the order
  TimePoint begun_;
  TimePoint next_order_;
};

}  // namespace dtrain
