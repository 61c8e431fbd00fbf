// Registrar: lets tasks in or refuses them, answers their heartbeats, and drops the records of lost tasks.
// The leader decides what a loss means for the run.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/peer_log.h"
#include "net/codec.h"
#include "trainer/ps/leader.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/task_table.h"
#include "trainer/ps/update_rule.h"
#include "trainer/shard/shard.h"

namespace dtrain {

class Registrar {
 public:
  struct Parts {
    const PsTask& task;
    const Shard& shard;
    UpdateRule& rule;
    TaskTable& members;
    Outbox& outbox;
    Leader& leader;
    uint64_t feed_token = 0;  // for workers; 0: none
  };
  explicit Registrar(const Parts& parts);

  // Each call may throw PeerLost, which ends the run, or RolledBack, which takes it back to a checkpoint.
  // `key`: the message's. A task is let in with a key of its own, and no other key speaks for it then.
  void OnHello(net::NodeId from, uint32_t key, const wire::Envelope& envelope, const wire::Hello& hello);
  void OnAbort(Member& member, const wire::Abort& abort, bool waits);
  // This ps has filled itself from its replica, the table of its tasks too: each worker sends again what is
  // open.
  void WelcomeBack();
  // Gives up the tasks that have not been heard for too long, and those that were killed.
  void Watch(TimePoint now);

  // Takes a member's heartbeat. One that does not name the run says only that the member is alive.
  void OnHeartbeat(Member& member, net::NodeId from, const wire::Envelope& envelope,
                   const wire::Heartbeat& beat);
  // Answers a message of no member. An operator is one who has the status key or, without keys, the run's
  // token: the heartbeats of the first get heartbeats, and the questions of either for the status get that.
  void RefuseStranger(net::NodeId from, uint32_t key, const wire::Envelope& envelope);

 private:
  void RefuseWhileItFills(net::NodeId from, const wire::Envelope& envelope);
  bool IsClosed(net::NodeId node);
  void RefuseHello(net::NodeId from, const wire::Envelope& envelope, const wire::Hello& hello,
                   const TaskTable::Decision& decision);
  void Welcome(Member& member, bool was_here, bool replaces);
  void SendWelcome(const Member& member);
  std::string WhoMayAsk(uint32_t key, const flatbuffers::String* token) const;
  bool IsToken(const flatbuffers::String* said) const;
  void TellStatus(net::NodeId to, const wire::Envelope& question);
  void SendBeat(net::NodeId to, const RunStatus& status);
  void GiveUp(Member& member, const std::string& why);
  void Forget(Member& member);
  void ForgetWorkersOf(const Member& ps);

  const Parts parts_;
  const Config& config_;
  TaskTable& members_;
  Outbox& outbox_;
  Leader& leader_;
  RunLedger* const ledger_;  // null: this is not ps 0
  Logger& log_;
  PeerLog refused_;
};

}  // namespace dtrain
