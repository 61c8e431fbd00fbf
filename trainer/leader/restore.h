// Restore: chooses what a run starts from and has every ps fill its range with it: the checkpoint of
// checkpoint.resume, the newest complete one, that of checkpoint.start_from, or initial values. When a ps
// finds the checkpoint damaged, Restore takes the next older one. A ps that does not see the checkpoint gets
// its pieces from here. Owner: LocalLeader. Thread: the ps loop. Messages: docs/wire.md, Orders to a ps.
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
#include "trainer/checkpoint/part_pieces.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/order/positions.h"
#include "trainer/peer/form_message.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"
#include "trainer/shard/range_filler.h"

namespace dtrain {

// What all ps have filled their ranges from.
struct StartedFrom {
  std::string path;        // of the run's own checkpoint; empty: the run is new
  int64_t step = 0;        // the checkpoint's global step
  Origin origin;           // what the run began with
  std::string other_data;  // how the data differ from those of `path`; empty: not, as far as known
  std::vector<DataFingerprint> trained_on;  // the data of `path` by worker, as far as known
  Positions positions;
  std::optional<InputForm> inputs;  // the form of the data; unset: not known
  InputForm fit;                    // FitOf() what all workers use; empty: not fitted, or not known
};

class Restore {
 public:
  struct Parts {
    const Config& config;
    const Layout& layout;
    TaskTable& members;
    Outbox& outbox;
    RunHistory& history;
    const CheckpointDirectory* directory;                  // null without checkpoint.dir
    std::function<void(const FillOrder& order)> fill_own;  // orders the RangeFiller of ps 0
    std::function<void(const StartedFrom& from)> done;     // called once, when every ps has its values
    Logger& log;
  };
  explicit Restore(Parts parts);

  // Chooses and gives the orders. `again`: the run had begun, and goes on from its newest checkpoint whatever
  // checkpoint.resume says. `data`: a worker's facts about its data; unset: none. This call and those below
  // throw UserError when the checkpoint is damaged or of another model, or when a run that had begun has none
  // here; IoError when all that such a run has are damaged; PeerLost when another process has taken the
  // directory of such a run.
  void Begin(bool again, std::optional<DataFacts> data);
  // Takes the answer of a ps, ps 0 included, to an order.
  void OnOutcome(size_t ps, const FillOutcome& outcome);
  // Sends the piece that a ps asks for. No answer if it cannot be had: the ps asks again.
  void OnReadPiece(const Member& ps, const wire::ReadPiece& question);
  void Tick(TimePoint now);

 private:
  enum class Phase { kIdle, kFilling, kKeeping };
  struct Candidate {
    std::string name;  // a name in checkpoint.dir; a path, of checkpoint.resume and checkpoint.start_from
    std::string path;
  };

  std::vector<Candidate> Choose();
  std::vector<Candidate> ListDirectory();
  std::vector<Candidate> ListNamed();
  std::vector<Candidate> ListChoices();
  void CheckNoneIsMissing(const std::vector<ListedCheckpoint>& listed) const;
  [[noreturn]] void NothingToGoBackTo() const;
  [[noreturn]] void NoneIsComplete() const;
  void TryNext();
  void Open(const Candidate& candidate);
  void Skip(const std::string& problem);
  // Whether the run names it as its newest checkpoint.
  bool IsNewest(const Candidate& candidate) const {
    return ShortText(parts_.history.checkpoint) == ShortText(candidate.path);
  }
  std::optional<net::LentBytes> ReadPiece(size_t ps, Piece piece);
  void OrderAll();
  void Order(size_t ps);
  void GoOnWhenAllHave();
  void Finish();
  void TakeCheckpoint(StartedFrom* from) const;
  std::optional<int64_t> TrainRows() const { return data_ ? data_->rows : std::nullopt; }
  Resumption ResumeFrom(Positions* saved) const;
  int64_t DecaySteps() const;
  void TakePositions(StartedFrom* from) const;
  InputForm FitFor(const std::string& path, const InputForm& saved) const;

  const Parts parts_;
  const ModelSlots slots_;
  Phase phase_ = Phase::kIdle;
  bool again_ = false;
  std::optional<DataFacts> data_;
  std::vector<Candidate> candidates_;  // newest first
  bool named_ = false;                 // by checkpoint.resume or start_from: the only candidate
  bool begins_ = false;                // the candidates are those of checkpoint.start_from
  size_t next_ = 0;
  FillOrder order_;
  std::unique_ptr<CheckpointReader> reader_;  // of the current candidate; null: initial values
  std::vector<bool> have_;                    // by ps: it has carried out the order
  std::vector<PartsOfPs> pieces_;             // by ps that asks for some
  TimePoint begun_;
  TimePoint next_order_;
};

}  // namespace dtrain
