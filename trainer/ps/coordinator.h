// Coordinator: what ps 0 does beyond owning a range: it waits until enough are here, has the chief
// initialise, grants the steps, knows which workers take part, collects their results and ends the run. Every
// answer is made again from state when a request is repeated. Thread: the ps loop. Order of messages:
// docs/wire.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/data/positions.h"
#include "trainer/ps/chief_role.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/round_desk.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/start_point.h"
#include "trainer/ps/step_grants.h"
#include "trainer/ps/worker_result.h"
#include "trainer/task/run_summary.h"

namespace dtrain {

class SaveDesk;

class Coordinator {
 public:
  // `history`: what this run was before it went back to a checkpoint, if it did.
  Coordinator(const Config& config, Membership& members, Outbox& outbox, Logger& log, RunHistory& history);
  // Where a worker that is told to start begins is for the update rule to say. Set before anything is
  // handled.
  void set_start_point(std::function<StartPoint(Member&)> start_point) {
    start_point_ = std::move(start_point);
  }

  // Null: no checkpoints. Set before anything is handled.
  void set_saves(SaveDesk* saves);
  // The rule begins at the global step of a checkpoint. Set before anything is handled.
  void set_begin_at(std::function<void(int64_t)> begin_at) { begin_at_ = std::move(begin_at); }
  // Called when the workers are told to start, after a rollback again; may be empty.
  void set_on_begun(std::function<void()> on_begun) { on_begun_ = std::move(on_begun); }

  // One request of the kinds that only ps 0 answers. False: not one of those.
  bool Handle(Member& member, const wire::Envelope& request);
  // Whether `member` has a step to take; in sync that is for its round to say.
  bool MayStep(const Member& member) {
    const Standing& standing = StandingOf(member);
    return sync() ? phase_ == Phase::kRunning && !standing.done : standing.open_steps > 0;
  }
  // A gradient of `member` was applied: one global step. Not for sync.
  void StepApplied(Member& member, int64_t examples);
  // sync: a round was applied: one global step, to which members gave `examples`.
  void RoundApplied();
  void CountExamples(const Member& member, int64_t examples) {
    StandingOf(member).result.examples += examples;
  }
  // How many steps `member` is granted with an answer: 1, or 0 near the end of the run.
  uint32_t GrantNext(Member& member);
  // sync: tells the other ps of rounds.
  RoundDesk& desk() { return desk_; }
  // No more steps than are granted now, or `rounds` in all (sync).
  void EndEarly(std::optional<int64_t> rounds = std::nullopt);
  // A task is gone or replaced: its open steps are granted again.
  void Left(Member& member);
  // To be called after Left(), when all else that knew the task has forgotten it: where that was the chief,
  // another one is.
  void PassChiefOn();
  bool IsChief(const Member& member) const { return chief_.Is(member); }
  int chief() const { return chief_.index(); }
  // 0 until the run has begun.
  uint32_t term() const { return phase_ == Phase::kJoining ? 0 : chief_.term(); }
  // What the loss of this task means for the run now.
  enum class Loss { kEnds, kGoesOn, kWaits, kRollsBack };
  Loss WhatIfLost(const Member& member) const;
  // The run goes back to a checkpoint now: notes in the history where it was.
  void NoteLoss();

  // Deadlines of the start and of lost workers, and the start's status line. Throws PeerLost naming who is
  // missing.
  void Tick(TimePoint now);
  // "joined 3 of 5; missing: ps 1 (10.0.0.2:9001)" until the start; then empty.
  std::string Status() const;

  int64_t global_step() const { return grants_.applied(); }
  // The run waits for those that it needs, or for the first weights.
  bool starting() const { return phase_ == Phase::kJoining || phase_ == Phase::kInitialising; }
  // A signal asks the run to end: it is saved, and then Tick() throws RunStopped. Later signals change
  // nothing.
  void Stop(int signal);
  int stop_signal() const { return stop_signal_; }
  // Where the workers are, as JSON.
  std::string PositionsNow() const;

  // Enough were here once, and the run is not over: from now on a lost ps cannot be replaced.
  bool begun() const { return phase_ == Phase::kInitialising || phase_ == Phase::kRunning; }
  // The run is over, and everybody knows or has had time to ask.
  bool Finished(TimePoint now) const;
  const RunSummary& summary() const { return summary_; }

 private:
  enum class Phase { kJoining, kInitialising, kRunning, kEnded };

  // What ps 0 keeps of each task, beside Membership's part. Requests are 0 when none waits.
  struct Standing {
    bool ready = false;
    bool takes_part = false;  // a worker that was told to start, and has not left since
    bool lost = false;        // one that took part and left before it was done
    TimePoint lost_at;
    bool done = false;
    bool told = false;  // has said Bye, or left after the end
    uint64_t ready_request = 0;
    uint64_t step_request = 0;
    uint64_t all_done_request = 0;
    uint64_t end_request = 0;
    int64_t open_steps = 0;  // granted, neither applied nor given back
    WorkerResult result;     // of a worker
  };

  Standing& StandingOf(const Member& member);
  const Standing& StandingOf(const Member& member) const;
  void OnReady(Member& member, uint64_t request, const wire::Ready& ready);
  void OnInitialised(Member& member, uint64_t request, const wire::Initialised& done);
  void StartAll();
  void SendInitialise(const Member& member, uint64_t request);
  void SendBecomeChief(const Member& member, uint64_t request);
  void TakePositions(const wire::Initialised& done);
  void OnSaved(const std::string& error);
  void EndWhenSaved();
  [[noreturn]] void EndStopped(const std::string& unsaved);
  void NoteReturning(const wire::Ready& ready);
  void NoteRecovered();
  void OnNeedStep(Member& member, uint64_t request);
  void OnDone(Member& member, uint64_t request, const wire::Done& done);
  void OnWaitAllDone(Member& member, uint64_t request);
  void OnReport(Member& member, uint64_t request, const wire::Report& report);
  void OnWaitEnd(Member& member, uint64_t request, const wire::WaitEnd& question);
  void SendEnd(const Member& member);
  bool sync() const { return config_.train.mode == TrainMode::kSync; }
  std::vector<uint32_t> StartingTogether() const;

  void BeginWhenEnoughAreReady();
  int64_t LeastToBegin(TimePoint now) const;
  bool WaitedLong(TimePoint now) const;
  Member* ChooseChief(TimePoint now);
  Member* Successor() const;
  Loss IfChiefIsLost() const;
  void Start(Member& member, uint64_t request);
  void SendOver(const Member& member, uint64_t request);
  bool ComesTooLate(const Member& member) const;
  bool IsReady(const Member& member) const { return member.here() && StandingOf(member).ready; }
  void CheckStart(TimePoint now);
  void CheckLost(TimePoint now);
  uint32_t Grant(Member& member, int64_t wanted);
  void CountStep();
  void ServeWaitingSteps();
  bool AllDone() const;
  void AnswerWhenAllDone();
  void Complete(RunSummary* summary) const;

  const Config& config_;
  Membership& members_;
  Outbox& outbox_;
  Logger& log_;
  RunHistory& history_;
  ChiefRole chief_;
  bool chief_lost_ = false;  // and PassChiefOn() has yet to be called
  std::function<void()> on_begun_;
  std::function<StartPoint(Member&)> start_point_;
  std::function<void(int64_t)> begin_at_;
  SaveDesk* saves_ = nullptr;
  Positions positions_;     // as the run, or what is left of it, began
  int64_t first_step_ = 0;  // the global step that it began at
  StepGrants grants_;
  Phase phase_ = Phase::kJoining;
  std::vector<Standing> standings_;  // as Membership::all()
  const TimePoint begun_;
  TimePoint next_status_;
  TimePoint others_ready_;  // a run that goes on: since when only workers are missing that it can do without
  TimePoint ended_;
  RunSummary summary_;
  std::string summary_json_;
  bool reported_ = false;  // the chief's results are here
  int stop_signal_ = 0;
  TimePoint stop_deadline_;
  bool all_done_ = false;            // the chief knows: no worker takes another step
  bool disturbed_ = false;           // rounds went on without a worker that was lost or came later
  int64_t first_applied_nanos_ = 0;  // wall clock
  RoundDesk desk_;
};

}  // namespace dtrain
