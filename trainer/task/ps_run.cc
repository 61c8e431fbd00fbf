#include "trainer/task/ps_run.h"

#include <optional>

#include "trainer/config/config.h"
#include "trainer/leader/local_leader.h"
#include "trainer/leader/run_stop.h"
#include "trainer/ps/held_run.h"
#include "trainer/ps/remote_leader.h"

namespace dtrain {

namespace {

std::unique_ptr<Leader> LeaderFor(const LeaderParts& parts) {
  if (parts.task.self.index == 0) return std::make_unique<LocalLeader>(parts);
  return std::make_unique<RemoteLeader>(parts);
}

}  // namespace

void TellOfFailedStart(const PsTask& task, const Failure& failure) {
  TaskTable members(task.config, task.self);
  Outbox outbox(task.channel, /*max_late=*/1);
  outbox.set_run({net::NewNodeId(), 0});
  const std::string text = failure.what();
  TellOfAbort({task.self, static_cast<int>(failure.code()), text, nullptr}, milliseconds(50), members,
              task.channel, outbox);
}

PsRun::PsRun(const PsTask& task) : task_(task) {
  if (task.self.index == 0) {
    BeginRun();
    if (HasReplica(task.config)) GoOnIfHeld();
    task.log.SetRun(history_.run.id);
    task.log.Detail("run id {:016x}", history_.run.id);
    summary_ = PsSummary::Open(task.config, task.hooks, task.log);
    task_.summary = summary_.get();
  }
  server_ = std::make_unique<PsServer>(task_, LeaderFor, history_);
}

void PsRun::BeginRun() {
  history_ = RunHistory();
  history_.run = {net::NewNodeId(), 0};
  history_.feed_token = net::NewNodeId();
}

void PsRun::GoOnIfHeld() {
  const std::optional<HeldRun> held = FindHeldRun(task_);
  if (!held) return;
  history_.run = held->run;
  history_.begun = true;
  history_.replica = held->epoch;
  history_.lost_since = held->heard;
}

RunSummary PsRun::Run() {
  while (true) {
    std::optional<RolledBack> rolled_back;
    try {
      return server_->Run();
    } catch (const RolledBack& why) {
      rolled_back = why;
    }
    LogRollback(*rolled_back, history_.begun ? "the run goes back to its newest checkpoint" : "joining again",
                task_.log);
    server_->Leave(rolled_back->why);
    server_.reset();                               // frees its memory for the next one
    if (history_.replica != 0) BeginRun();         // it could not fill itself from its replica
    server_ = std::make_unique<PsServer>(task_, LeaderFor, history_);
  }
}

}  // namespace dtrain
