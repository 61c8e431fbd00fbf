// Registrar: who comes to a ps, beats and goes: lets tasks in or refuses them, answers their heartbeats, and
// has all that knew a task forget it when it is lost, or the run end or go back.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <string>

#include "base/clock.h"
#include "net/codec.h"
#include "trainer/ps/coordinator.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/parameter_shard.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/slow_workers.h"
#include "trainer/ps/update_rule.h"
#include "trainer/ps/uplink.h"

namespace dtrain {

class Registrar {
 public:
  struct Parts {
    const PsTask& task;
    const ParameterShard& shard;
    UpdateRule& rule;
    Membership& members;
    Outbox& outbox;
    Coordinator* coordinator;  // of ps 0; null elsewhere, and then there is an uplink
    const Uplink* uplink;
  };
  explicit Registrar(const Parts& parts);

  // Each of these may throw what ends the run, as PeerLost, or takes it back, as RolledBack.
  void OnHello(net::NodeId from, const wire::Hello& hello);
  // A task says that it failed.
  void OnAbort(Member& member, const wire::Abort& abort);
  // Gives up who has not been heard for too long.
  void Watch(TimePoint now);

  void OnHeartbeat(Member& member, net::NodeId from, const wire::Heartbeat& beat);
  // A message of one that is not registered.
  void RefuseStranger(net::NodeId from, const wire::Envelope& envelope);

 private:
  bool IsClosed(net::NodeId node);
  void RefuseHello(net::NodeId from, const wire::Hello& hello, const Membership::Decision& decision);
  void Welcome(Member& member, bool was_here, bool replaces);
  void OnLoss(Member& member, const std::string& why);
  [[noreturn]] void RollBack(const std::string& why);
  void Forget(Member& member);
  void ForgetWorkers();
  void WatchPace(const Member& member, const wire::Heartbeat& beat);

  const Parts parts_;
  const Config& config_;
  Membership& members_;
  Outbox& outbox_;
  Coordinator* const coordinator_;
  Logger& log_;
  SlowWorkers slow_workers_;  // ps 0's
  int hellos_refused_ = 0;
};

}  // namespace dtrain
