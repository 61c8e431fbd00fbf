// PsServer: runs one ps until the run ends or goes back to a checkpoint: it receives, applies gradients and
// answers. It is the same on every ps; the leader is in the process of ps 0 and reached over the network
// elsewhere (leader.h).
// Thread: the caller's, or in Handle() that of a sender in the same process, one at a time
// (docs/architecture.md, Who runs the ps); heartbeats to ps 0 have their own (remote_leader.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/peer_log.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/choices.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/peer/stranger_budget.h"
#include "trainer/ps/gradient_reader.h"
#include "trainer/ps/leader.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/registrar.h"
#include "trainer/ps/replica_holder.h"
#include "trainer/ps/replica_link.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/snapshot_keeper.h"
#include "trainer/ps/task_table.h"
#include "trainer/ps/update_rule.h"
#include "trainer/result/run_summary.h"
#include "trainer/shard/range_filler.h"
#include "trainer/shard/shard.h"

namespace dtrain {

class PsServer {
 public:
  // Throws UserError when checkpoints cannot be written, and
  // PeerLost when another process has taken checkpoint.dir.
  PsServer(const PsTask& task, const MakeLeader& make_leader, RunHistory& history);

  // Serves until the run is over. Throws Failure when the run has failed; call Abort() then. Throws
  // RolledBack when the run goes back to a checkpoint; call Leave() then. Both tell the other tasks.
  RunSummary Run();
  void Leave(const std::string& why) { leader_->Leave(why); }
  // Tells the tasks that have to know that this one has failed, or was stopped with `summary`.
  void Abort(int exit_code, const std::string& text, const RunSummary* summary = nullptr);
  // After Abort(), what the run has reached, if this ps leads it.
  RunSummary Reached() const;

 private:
  TimePoint NextTick(TimePoint now) const;
  void Take(net::NodeId from, net::Message& message);
  void Handle(net::NodeId from, net::Message& message);
  void OnHello(net::NodeId from, uint32_t key, const wire::Envelope& envelope, const wire::Hello& hello);
  void HandleStranger(net::NodeId from, const net::Message& message);
  void HandleMember(Member& member, const wire::Envelope& request, net::Message& message);
  void OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message);
  void Record(Member& member, uint64_t request, const wire::Push& push, net::Frame payload,
              net::TensorView as_it_came);
  void OnDone(Member& member, uint64_t request);
  void AnswerPull(Member& member, uint64_t request, bool repeated, const wire::Pull& pull);
  void OnPull(Member& member, uint64_t request, bool repeated, const wire::Pull& pull,
              const net::Message& message);
  void OnRepeated(Member& member, uint64_t request, const wire::Push& push, const net::Message& message);
  void RefuseRequest(Member& member, uint64_t request, const char* what, const std::string& why);
  std::optional<ShardReport> Report();
  void SendLate();
  void MakeReplicas();
  void TendReplica(TimePoint now);
  void TellWorkersLeft();
  bool OwesTurn() const;
  bool IsUrgent() const;
  void EndTurn();
  void LeadInPlace(const std::string& why);
  void TendInPlace(TimePoint now);
  // The ps 0 in this process, if that has this conversation; null: it has not.
  PsServer* InPlaceFor(net::NodeId from) const;
  void DropFrame(net::NodeId from, const char* why);
  void Tick(TimePoint now);

  const PsTask task_;
  const MakeLeader make_leader_;
  const Config& config_;
  net::Channel& channel_;
  Logger& log_;
  Shard shard_;
  TaskTable members_;
  Outbox outbox_;
  Activity activity_;
  std::unique_ptr<Leader> leader_;  // never null after the constructor
  RunLedger* ledger_ = nullptr;     // the leader's; null: this is not ps 0
  const std::unique_ptr<UpdateRule> rule_;
  SnapshotKeeper snapshots_;
  RangeFiller filler_;
  GradientReader gradients_;
  std::optional<ReplicaHolder> holder_;  // of the ps before, with replicas
  std::optional<ReplicaLink> link_;      // to the replica of this ps
  std::vector<net::NodeId> told_;        // by worker, the conversation that the replica knows
  bool refused_ = false;                 // a request, since too many records wait
  bool restored_ = false;                // from the replica
  // ps 0, in this turn of the loop: something else than tensors has come.
  bool leads_ = false;
  // On ps 1, once ps 0 does not come back: the ps 0 that leads the run to its end, in this process.
  struct InPlace;
  std::shared_ptr<InPlace> in_place_;
  std::optional<Registrar> registrar_;
  const milliseconds tick_;
  net::NodeId leader_node_ = 0;
  StrangerBudget strangers_;
  PeerLog dropped_;  // of members: a flood of strangers does not silence it
  PeerLog dropped_of_strangers_;
};

}  // namespace dtrain
