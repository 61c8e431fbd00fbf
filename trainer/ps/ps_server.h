// PsServer: one ps until the run ends or goes back to a checkpoint: receives, decides, applies, answers. ps 0
// coordinates besides.
// One thread runs everything here; heartbeats to ps 0 have their own (uplink.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/ps/checkpoint_desk.h"
#include "trainer/ps/coordinator.h"
#include "trainer/ps/gradient_check.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/parameter_shard.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/range_filler.h"
#include "trainer/ps/registrar.h"
#include "trainer/ps/restore.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/update_rule.h"
#include "trainer/ps/uplink.h"
#include "trainer/result/run_summary.h"
#include "trainer/summary/summary.h"

namespace dtrain {

class PsServer {
 public:
  // `summary`: of ps 0, with summary.dir; otherwise null.
  PsServer(const PsTask& task, RunHistory& history, PsSummary* summary);

  // Serves until the run is over. Throws Failure when it failed, Abort() then tells the others; RolledBack
  // when the run goes back to a checkpoint, SendAway() then tells the others.
  RunSummary Run();
  void SendAway(const std::string& why);
  // Tells everybody (ps 0), or ps 0, that this task failed or gave the run up.
  // `summary`: of a run that was stopped; null: of one that failed.
  void Abort(int exit_code, const std::string& text, const RunSummary* summary = nullptr);

 private:
  void Coordinate();
  RangeFiller::Parts FillerParts();
  Restore::Parts RestoreParts();
  TimePoint NextTick(TimePoint now) const;
  void Handle(net::NodeId from, net::Message& message);
  void HandleLeader(const wire::Envelope& envelope, net::Message& message);
  bool HandlePs(const Member& ps, const wire::Envelope& envelope, net::Message& message);
  void HandleMember(Member& member, const wire::Envelope& request, net::Message& message);
  void OnStop(const Member& member, const wire::Stop& stop);
  void OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message);
  void OnPull(Member& member, uint64_t request, const wire::Pull& pull);
  void OnRepeatedPull(Member& member, uint64_t request, const wire::Pull& pull);
  void OnRepeated(Member& member, uint64_t request, int64_t block);
  void SummariseStep();
  ShardReport Report() const;
  void SendReport();
  bool TakeRequest(Member& member, uint64_t request, bool* repeated);
  void DropFrame(net::NodeId from, const char* why);
  void Tick(TimePoint now);
  bool Finished(TimePoint now) const;
  RunSummary Summary() const;

  const PsTask task_;
  const Config& config_;
  const TaskId self_;
  const Layout& layout_;
  net::Channel& channel_;
  Logger& log_;
  RunHistory& history_;
  const std::unique_ptr<ParameterShard> shard_owner_;
  ParameterShard& shard_;
  Membership members_;
  Outbox outbox_;
  Activity activity_;
  std::unique_ptr<Coordinator> coordinator_;  // ps 0
  std::unique_ptr<UpdateRule> rule_;
  std::optional<GradientCheck> check_;
  std::optional<RangeFiller> filler_;
  std::optional<CheckpointDesk> checkpoints_;
  std::optional<Restore> restore_;  // ps 0
  std::optional<Registrar> registrar_;
  std::unique_ptr<Uplink> uplink_;  // the others
  PsSummary* const summary_;        // of ps 0, with summary.dir; else null
  const milliseconds tick_;
  std::optional<ShardReport> report_;  // of the final weights; unset: nobody has asked
  int64_t summarised_step_ = 0;
  uint64_t frames_dropped_ = 0;
};

}  // namespace dtrain
