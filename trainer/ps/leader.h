// Leader: what a ps needs of the leader of its run, the same on every ps. The leader runs beside the shard of
// ps 0 (trainer/leader/local_leader.h: each call acts at once); any other ps reaches it over the network
// (remote_leader.h: calls that concern a worker's steps do nothing, since ps 0 hears of those itself).
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gpu/optimizer_ops.h"
#include "net/codec.h"
#include "trainer/peer/run_id.h"
#include "trainer/ps/task_table.h"
#include "trainer/result/run_summary.h"
#include "trainer/shard/range_filler.h"
#include "trainer/shard/shard_saver.h"

namespace dtrain {

// sync: one exchange that a round takes up.
struct RoundExchange {
  int worker = 0;
  uint64_t incarnation = 0;  // of the worker: an exchange of one that has left is not waited for
};

// sync: a round, the same for every ps.
struct RoundDecision {
  uint64_t number = 0;                      // from 1, without gaps, empty rounds included
  std::vector<RoundExchange> contributors;  // in the order of their workers
  std::vector<RoundExchange> answered;      // the others
};

// What a heartbeat's answer tells a task of its run; nothing where this ps does not lead it.
struct RunStatus {
  std::string text;  // "joined 3 of 5; missing: ..." until the start; then empty
  int workers = 0;   // that are here
  int stop_signal = 0;
  KnownCheckpoint newest;
};

class Leader {
 public:
  virtual ~Leader() = default;

  // The run; not known until this ps has joined it.
  virtual RunId run() const = 0;
  // The connection from which it sends orders; 0: it is in this process.
  virtual net::NodeId node() const = 0;
  // The number of updates that were applied; 0 where this ps does not lead.
  virtual int64_t global_step() const = 0;

  // A worker's steps. What it may still push, and what its answers grant and ask for.
  virtual bool MayStep(const Member& worker) const = 0;
  // A gradient of the worker is in a round (sync), or was applied: one global step.
  virtual void CountExamples(Member& worker, int64_t examples) = 0;
  virtual void StepApplied(Member& worker, int64_t examples) = 0;
  // A whole gradient of the worker counts now. How many steps it is granted with the answer: 1, or 0 near the
  // end of the run.
  virtual uint32_t GrantNext(Member& worker) = 0;
  // The local step behind which an answer asks the worker to evaluate; 0: none.
  virtual uint64_t EvaluationDueFor(const Member& worker) const = 0;

  // Rounds (sync). The leader decides them and has each ps apply them by UpdateRule::OnRound().
  // The workers that begin together.
  virtual void ExpectTogether(const flatbuffers::Vector<uint32_t>& workers) = 0;
  // An exchange of a worker is here: a gradient of the weights of `version`, or none.
  virtual void Offer(RoundExchange exchange, std::optional<uint64_t> version) = 0;
  // The worker takes no more part, or is lost and rounds wait for it.
  virtual void LeaveRounds(const Member& worker, bool comes_back) = 0;
  // This ps has applied a round that had contributors.
  virtual void RoundApplied() = 0;
  // This ps's part of the norm of a round. What the mean of the round is multiplied by, once every ps has
  // told its part; until then unset, and UpdateRule::OnScale() will be told.
  virtual std::optional<double> OnNorm(uint64_t round, const gpu::SquareSum& squares) = 0;

  // Tasks that come and go. Each may throw what ends the run, as PeerLost, or takes it back, as RolledBack.
  // A task has said Hello. `replaces`: another one that was here.
  virtual void OnWelcome(Member& member, bool replaces) = 0;
  // It is gone, or begins its conversation anew: nothing that it asked is answered, and its open steps are
  // granted again.
  virtual void Left(Member& member) = 0;
  // It is overdue; `why` says for how long. Its record is dropped after that.
  virtual void OnOverdue(Member& member, const std::string& why) = 0;
  // It says that it has failed.
  virtual void OnAbort(Member& member, const wire::Abort& abort) = 0;
  // A heartbeat. What the answer to it tells.
  virtual RunStatus OnHeartbeat(const Member& member, const wire::Heartbeat& beat) = 0;

  // A numbered request of the kinds that the leader answers; `repeated`: it was taken before. False: it is
  // none of these.
  virtual bool OnRequest(Member& member, const wire::Envelope& request, bool repeated) = 0;
  // What another ps tells the leader without a number. False: it is none of that.
  virtual bool OnNotice(Member& ps, const wire::Envelope& envelope, net::Message& message) = 0;
  // A message from node(). Throws what ends the run here, or RolledBack.
  virtual void OnMessage(const wire::Envelope& envelope, net::Message& message) = 0;

  // What became of the leader's orders to this ps.
  virtual void OnFilled(const FillOutcome& outcome) = 0;
  // The snapshot for checkpoint `number` is taken. `part`: how the writing of it ended; null: not yet.
  virtual void OnSnapshot(uint64_t number, const ShardSaver::Outcome* part) = 0;
  // Asks for a piece of the checkpoint that is restored; it may get lost.
  virtual void AskForPiece(uint64_t number, int64_t piece) = 0;
  // Whether this ps reads and writes in the leader's checkpoint.dir itself.
  virtual bool SeesDirectory() const = 0;

  // At least every 50 ms: deadlines, status lines, what is to be asked again. Throws as above, or RunStopped.
  virtual void Tick(TimePoint now) = 0;
  // A checkpoint is being written: Tick() is wanted soon.
  virtual bool busy() const = 0;
  // The run is over, and every task knows or has had time to ask.
  virtual bool Finished(TimePoint now) const = 0;
  // After Finished().
  virtual RunSummary Summary() const = 0;
  // The run goes back to a checkpoint: the tasks here are told to join again.
  virtual void Leave(const std::string& why) = 0;
  // This task failed, or was stopped with `summary`: tells everybody that has to know. Waits for some seconds
  // at most.
  virtual void Abort(int exit_code, const std::string& text, const RunSummary* summary) = 0;
};

}  // namespace dtrain
