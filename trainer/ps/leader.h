// Leader and RunLedger: the leader of the run as a ps sees it. Every ps has a Leader, ps 0 a RunLedger too;
// there both are the leader itself (trainer/leader/local_leader.h), and each call acts at once. Any other ps
// reaches it over the network (remote_leader.h). Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "gpu/optimizer_ops.h"
#include "net/codec.h"
#include "trainer/peer/run_id.h"
#include "trainer/ps/task_table.h"
#include "trainer/result/run_summary.h"
#include "trainer/shard/range_filler.h"
#include "trainer/shard/shard_report.h"
#include "trainer/shard/shard_saver.h"

namespace dtrain {

class Outbox;
class ReplicaHolder;
class ReplicaLink;
class SnapshotKeeper;
class StateImage;
class UpdateRule;
struct Activity;
struct PsTask;
struct RunHistory;

// sync: an exchange that a round takes up.
struct RoundExchange {
  int worker = 0;
  uint64_t incarnation = 0;  // of the worker: rounds do not wait for an earlier incarnation

  template <typename Archive>
  void State(Archive& archive) {
    archive(worker, incarnation);
  }
};

// sync: a round, the same for every ps.
struct RoundDecision {
  uint64_t number = 0;                      // counts from 1 without gaps, empty rounds included
  std::vector<RoundExchange> contributors;  // by worker index
  std::vector<RoundExchange> answered;      // the other exchanges, by worker index

  template <typename Archive>
  void State(Archive& archive) {
    archive(number, contributors, answered);
  }
};

// The state of the run that the answer to a heartbeat carries; empty on a ps i > 0.
struct RunStatus {
  std::string text;  // until the start: "joined 3 of 5; missing: ..."; then empty
  int workers = 0;   // connected workers
  int stop_signal = 0;
  KnownCheckpoint newest;
};

// RunLedger: counts the run's steps, decides its rounds, and knows its tasks. Workers talk to every ps, and
// are counted on ps 0 alone.
class RunLedger {
 public:
  virtual ~RunLedger() = default;

  // The steps of a worker.

  // The number of applied updates.
  virtual int64_t global_step() const = 0;
  // Whether the worker may still push.
  virtual bool MayStep(const Member& worker) const = 0;
  // Counts a gradient's examples and loss: in a round (sync), or with its application, which is one global
  // step.
  virtual void CountGradient(Member& worker, const wire::Push& push) = 0;
  virtual void StepApplied(Member& worker, const wire::Push& push) = 0;
  // In place of these: the gradient was counted before, as another worker's (Push.empty). It is no global
  // step, and its granted step is given back.
  virtual void StepTakenBefore(Member& worker) = 0;
  // sync: a gradient came too late for its round, and is answered.
  virtual void StepDropped(Member& worker) = 0;
  // The steps granted to a worker with the answer to a whole gradient: 1, or 0 near the end of the run.
  virtual uint32_t GrantNext(Member& worker) = 0;
  // The local step after which the worker is asked, with an answer, to evaluate; 0: none.
  virtual uint64_t EvaluationDueFor(const Member& worker) const = 0;
  // The worker's newest lease, until it must know it (data.split: dynamic).
  virtual net::WeightsHead::Lease LeaseFor(const Member& /*worker*/) const { return {}; }

  // The rounds of mode sync. They are decided here; each ps applies them by UpdateRule::OnRound().

  // Names the workers that begin together.
  virtual void ExpectTogether(const flatbuffers::Vector<uint32_t>& workers) = 0;
  // An exchange of a worker is complete here: a gradient of the weights of `version`, or none.
  virtual void Offer(RoundExchange exchange, std::optional<uint64_t> version) = 0;
  // The worker no longer takes part, or, with `comes_back`, is lost and rounds wait for it.
  virtual void LeaveRounds(const Member& worker, bool comes_back) = 0;
  // This ps has applied a round with contributors.
  virtual void RoundApplied() = 0;

  // Tasks that come and go. Each call may throw PeerLost, which ends the run, or RolledBack, which takes it
  // back to a checkpoint.

  // A task has said Hello. `replaces`: it takes the place of another process.
  virtual void OnWelcome(Member& member, bool replaces) = 0;
  // The task is gone or starts its conversation anew: drops its requests and grants its open steps again.
  virtual void Left(Member& member) = 0;
  virtual RunStatus OnHeartbeat(const Member& member, const wire::Heartbeat& beat) = 0;
  // Takes an unnumbered message of another ps. False: it is not for the leader.
  virtual bool OnNotice(Member& ps, const wire::Envelope& envelope, net::Message& message) = 0;

  // The epoch of the replica from which this ps, which was lost, fills itself while the run waits for it; 0:
  // it does not.
  virtual uint64_t ReplicaFor(const Member& /*ps*/) const { return 0; }

  // The random number of this process, with a replica: ps 1 takes the replica of no other process; 0: none.
  virtual uint64_t Incarnation() const { return 0; }
  // With a replica: the state of the leader, in sections. Without `all` it leaves out sections that the
  // messages about tensors do not change.
  using PutSection = std::function<void(size_t section, std::string_view bytes)>;
  virtual void TellState(bool /*all*/, const PutSection& /*put*/) {}
  // This ps 0 has filled itself from the replica of a lost one: leads its run on from that state. May throw
  // RolledBack.
  virtual void TakeOver(const StateImage& /*state*/) {}
  // This one leads in the place of a ps 0 that does not come back: saves the run, and ends it.
  virtual void EndInPlace(const std::string& /*why*/) {}
  // All tasks hear it since then: ends a run that has nothing to save.
  virtual void AllHear() {}

  // What the run does now, as JSON, for an operator.
  virtual std::string StatusJson() = 0;
  // What the run has reached, of a run that fails; empty: it has not begun.
  virtual RunSummary Reached() const = 0;
};

// Leader: gives a ps its orders and takes its reports.
class Leader {
 public:
  virtual ~Leader() = default;

  // The ledger of the run; null: this ps is not ps 0.
  virtual RunLedger* ledger() { return nullptr; }
  // The run; unknown until this ps has joined it.
  virtual RunId run() const = 0;
  // The connection over which the leader sends its orders; 0: it is in this process.
  virtual net::NodeId node() const = 0;
  // This ps has taken the place of a lost one, and does not have all of its replica yet: it knows none of its
  // workers, and lets nobody in.
  virtual bool fills() const { return false; }

  // On ps 1: RunLedger::Incarnation() of the ps 0 that has let it in; 0: not known.
  virtual uint64_t LeaderIncarnation() const { return 0; }
  // On ps 1: why it has to lead the run to its end in the place of ps 0, whose replica it holds; empty: it
  // has not.
  // `sought`: another task has come here for ps 0.
  virtual std::string WhyLeads(bool /*sought*/) const { return ""; }
  // ps 0 was killed, and nobody starts it again.
  virtual void LoseLeader(const std::string& /*how*/) {}
  // The leader is in this process from now on: hands what is sent to it to `take`.
  virtual void MoveLeaderHere(std::function<void(net::Message)> /*take*/) {}

  // The task is overdue; `why` says for how long. The caller then forgets its connection. This call and the
  // next two may throw as those of RunLedger.
  virtual void OnOverdue(Member& member, const std::string& why) = 0;
  // A task says that it fails. `waits`: it stays until the run has ended. Returns whether the task is gone.
  virtual bool OnAbort(Member& member, const wire::Abort& abort, bool waits) = 0;
  // Takes a numbered request. `repeated`: it was taken before. False: it is not for the leader.
  virtual bool OnRequest(Member& member, const wire::Envelope& request, bool repeated) = 0;
  // Takes a message from node(). Throws what ends the run here, or RolledBack.
  virtual void OnMessage(const wire::Envelope& envelope, net::Message& message) = 0;

  // The replica that this ps holds is not what it is a copy of: the run ends.
  virtual void OnReplicaDiffers(const std::string& /*why*/) {}

  // The ps reports what became of the leader's orders to it.

  // The range is filled, or could not be.
  virtual void OnFilled(const FillOutcome& outcome) = 0;
  // The snapshot for checkpoint `number` is taken. `part`: how writing it has ended; null: it has not. `ps`:
  // whose it is: this one's, or that of the lost one whose replica this one holds.
  virtual void OnSnapshot(int ps, uint64_t number, const ShardSaver::Outcome* part) = 0;
  // This ps's part of the norm of a round. Returns the factor for the round's mean if every ps has sent its
  // part; else UpdateRule::OnScale() brings it later.
  virtual std::optional<double> OnNorm(uint64_t round, const gpu::SquareSum& squares) = 0;
  // Asks for a piece of the checkpoint that is restored. The question may get lost.
  virtual void AskForPiece(uint64_t number, Piece piece) = 0;
  // Whether this ps itself reads and writes the leader's checkpoint.dir.
  virtual bool SeesDirectory() const = 0;

  // Call this at least every 50 ms: it checks deadlines, logs status lines and repeats questions. Throws as
  // OnMessage(), or RunStopped.
  virtual void Tick(TimePoint now) = 0;
  // A checkpoint is being written, or the report on the final weights made: call Tick() soon.
  virtual bool busy() const = 0;
  // The run is over, and every task knows it or has had time to ask.
  virtual bool Finished(TimePoint now) const = 0;
  // Valid after Finished().
  virtual RunSummary Summary() const = 0;
  // The run goes back to a checkpoint: tells the connected tasks to join again.
  virtual void Leave(const std::string& why) = 0;
  // This task has failed, or was stopped with `summary`: tells the others. Waits a few seconds at most.
  virtual void Abort(int exit_code, const std::string& text, const RunSummary* summary) = 0;
};

// The parts that a leader acts on. PsServer owns them. When it ends, the rule, the keeper of snapshots and
// the filler go before the leader, so that no thread writes into a checkpoint that the leader then abandons;
// the leader's destructor must not use them.
struct LeaderParts {
  const PsTask& task;
  RunHistory& history;
  const Activity& activity;
  TaskTable& members;
  Outbox& outbox;
  UpdateRule& rule;
  SnapshotKeeper& snapshots;
  RangeFiller& filler;
  // Works on the report on the final weights for a few milliseconds; unset: call it again.
  std::function<std::optional<ShardReport>()> report;
  ReplicaLink* replica = nullptr;   // null: this ps has none
  ReplicaHolder* holder = nullptr;  // null: this ps holds none
};
// Makes the leader of a PsServer, which owns it.
using MakeLeader = std::function<std::unique_ptr<Leader>(const LeaderParts&)>;

}  // namespace dtrain
