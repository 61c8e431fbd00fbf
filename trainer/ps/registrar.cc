#include "trainer/ps/registrar.h"

#include <optional>

#include "base/error.h"
#include "base/fault_point.h"
#include "base/signals.h"
#include "trainer/peer/abort.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/ps/run_history.h"

namespace dtrain {
namespace {

using wire::Reason;

constexpr int kRefusalsLogged = 20;

}  // namespace

Registrar::Registrar(const Parts& parts)
    : parts_(parts),
      config_(parts.task.config),
      members_(parts.members),
      outbox_(parts.outbox),
      coordinator_(parts.coordinator),
      log_(parts.task.log),
      slow_workers_(config_.cluster.worker.size()) {}

void Registrar::OnHello(net::NodeId from, const wire::Hello& hello) {
  const Uplink* const uplink = parts_.uplink;
  if (uplink != nullptr && !uplink->run().known()) {
    return outbox_.Refuse(from, 0, Reason::NotReady,
                          fmt::format("{} has not joined ps 0 yet", TaskName(parts_.task.self)));
  }
  if (uplink != nullptr) outbox_.set_run(uplink->run());
  const bool was_here = members_.Find(from) != nullptr;
  const auto closed = [this](net::NodeId old) { return IsClosed(old); };
  const Membership::Decision decision = members_.Admit(from, hello, closed);
  if (!decision.welcome) return RefuseHello(from, hello, decision);
  Welcome(*members_.Find(from), was_here, decision.replaced.has_value());
}

bool Registrar::IsClosed(net::NodeId node) {
  const auto ping = [](auto& builder) {
    return wire::CreateHeartbeat(builder, builder.CreateString("serve"), 0, builder.CreateString(""));
  };
  return outbox_.Send(node, 0, ping) == net::SendResult::kGone;
}

void Registrar::RefuseHello(net::NodeId from, const wire::Hello& hello,
                            const Membership::Decision& decision) {
  outbox_.Refuse(from, 0, decision.reason, decision.text);
  // Bounded, the count too: a stranger may ask for ever.
  if (decision.reason == Reason::Held || hellos_refused_ == kRefusalsLogged) return;
  ++hellos_refused_;
  log_.Warning("refused a task ({}): {}", ShortText(hello.process()->str()), decision.text);
}

// `was_here`: on this connection. `replaces`: another that was here.
void Registrar::Welcome(Member& member, bool was_here, bool replaces) {
  if (member.task.role == Role::kPs && coordinator_->begun()) {
    const std::string why =
        members_.NameOf(member) + " was restarted during the run and has lost its weights";
    if (RecoversPs(config_)) RollBack(why);
    throw PeerLost("{}. Start the run again.", why);
  }
  // It was lost before anybody noticed.
  const bool fatal = config_.failure.worker_lost == WorkerLost::kFail && coordinator_ != nullptr && replaces;
  if (fatal && coordinator_->WhatIfLost(member) == Loss::kEnds) {
    OnLoss(member, members_.NameOf(member) + " was restarted during the run");
  }
  if (replaces) {
    log_.Warning("{} takes the place of an earlier one whose connection is gone", members_.NameOf(member));
    if (member.task.role == Role::kPs) ForgetWorkers();
  } else {
    log_.Debug("{} is here", members_.NameOf(member));
  }
  // What it had open before this Hello.
  if (coordinator_ != nullptr && (replaces || was_here)) coordinator_->Left(member);
  parts_.rule.Lost(member);
  const bool saves = coordinator_ != nullptr && !config_.checkpoint.dir.empty();
  const auto heartbeat_ms = static_cast<uint32_t>(Heartbeat::Interval(config_.failure.detect_s).count());
  const FaultScope fault("start.welcome");
  outbox_.Send(member.node, 0,
               [&](auto& builder) { return wire::CreateWelcome(builder, heartbeat_ms, saves); });
}

void Registrar::RefuseStranger(net::NodeId from, const wire::Envelope& envelope) {
  const RunId run = RunIdOf(envelope);
  if (!run.known() || run != outbox_.run()) {
    return outbox_.Refuse(from, envelope.request(), Reason::Run,
                          "it was restarted, or has not met this task");
  }
  outbox_.Refuse(from, envelope.request(), Reason::Unregistered,
                 fmt::format("it gave this task up, which it had not heard for {} s (failure.detect_s), or "
                             "another took its index",
                             config_.failure.detect_s));
}

void Registrar::WatchPace(const Member& member, const wire::Heartbeat& beat) {
  // Whatever a peer says, differences of these fit.
  const auto bounded = [](uint64_t count) { return static_cast<int64_t>(count & 0x3fffffffffffffff); };
  const SlowWorkers::Pace pace{bounded(beat.steps()), bounded(beat.own_us())};
  const std::optional<SlowWorkers::Change> change =
      slow_workers_.Report(member.task.index, pace, members_.workers());
  if (!change) return;
  const std::string text = fmt::format("{} {}", members_.NameOf(member), PaceText(*change));
  change->slow ? log_.Warning("{}", text) : log_.Info("{}", text);
}

void Registrar::OnHeartbeat(Member& member, net::NodeId from, const wire::Heartbeat& beat) {
  members_.NoteBeat(member, beat);
  Coordinator* const leads = coordinator_;
  if (leads != nullptr && member.task.role == Role::kWorker) WatchPace(member, beat);
  if (leads != nullptr && AsksToStop(beat.stop())) leads->Stop(beat.stop());
  const std::string status = leads != nullptr ? leads->Status() : std::string();
  const int workers = leads != nullptr ? members_.workers() : 0;
  const KnownCheckpoint newest = leads != nullptr ? leads->newest_checkpoint() : KnownCheckpoint();
  outbox_.Send(from, 0, [&](auto& builder) {
    const auto checkpoint = newest.where.empty() ? 0 : builder.CreateString(newest.where);
    return wire::CreateHeartbeat(builder, builder.CreateString("serve"), parts_.shard.version(0),
                                 builder.CreateString(status), static_cast<uint32_t>(workers), 0, 0,
                                 leads != nullptr ? leads->stop_signal() : 0, checkpoint,
                                 static_cast<uint64_t>(newest.step));
  });
}

void Registrar::Watch(TimePoint now) {
  for (Member* member : members_.Tick(now)) {
    const std::string text = members_.WhyOverdue(*member);
    // Its heartbeats end it: nobody waits for it any more.
    if (coordinator_ != nullptr && members_.Stuck(*member)) {
      outbox_.Send(member->node | 1, 0, [&](auto& builder) {
        return CreateAbort(builder, static_cast<int>(ExitCode::kPeerLost), parts_.task.self, text);
      });
    }
    if (parts_.task.on_lost && coordinator_ != nullptr) parts_.task.on_lost(member->task);
    OnLoss(*member, text);
  }
}

// A run that diverges, or has not begun, ends with the task that failed; otherwise it is one that is lost.
void Registrar::OnAbort(Member& member, const wire::Abort& abort) {
  const std::string text = AbortText(config_.cluster, abort);
  const bool of_run = abort.exit_code() == static_cast<int>(ExitCode::kDiverged);
  const RunEnded ended(CauseOf(abort), text);
  if (of_run || coordinator_ == nullptr || coordinator_->starting()) throw ended;
  const Loss loss = coordinator_->WhatIfLost(member);
  if (loss == Loss::kEnds) throw ended;
  OnLoss(member, fmt::format("{} ended with exit code {}: {}", members_.NameOf(member), abort.exit_code(),
                             ShortText(abort.text()->str())));
}

// Ends the run, or goes on, as failure.worker_lost says.
void Registrar::OnLoss(Member& member, const std::string& why) {
  const Loss loss = coordinator_ != nullptr ? coordinator_->WhatIfLost(member) : Loss::kGoesOn;
  if (loss == Loss::kRollsBack) RollBack(why);
  if (loss == Loss::kEnds) {
    if (member.task.role == Role::kPs) throw PeerLost("{}. Look at its log.", why);
    throw PeerLost("{}; {}. Look at its log.", why,
                   config_.failure.worker_lost == WorkerLost::kFail ? "failure.worker_lost is fail"
                   : members_.FeedsOthers(member)                   ? "it feeds all others (data.split: feed)"
                                                                    : "no other worker is left to go on");
  }
  if (loss == Loss::kWaits) {
    log_.Warning("{}; the run waits for it up to {} s (failure.wait_s)", why, config_.failure.wait_s);
  } else {
    const bool begun = coordinator_ != nullptr && coordinator_->begun();
    log_.Warning("{}{}", why, begun ? "; the run goes on without it" : "");
  }
  Forget(member);
}

// All tasks begin again from the newest checkpoint; what is here goes.
void Registrar::RollBack(const std::string& why) {
  coordinator_->NoteLoss();
  throw RolledBack{why};
}

// The member has to say Hello again. Before the start a lost ps takes the workers' registrations along: they
// are registered with it too, and with its successor they are not.
void Registrar::Forget(Member& member) {
  if (coordinator_ != nullptr) coordinator_->Left(member);
  outbox_.DropLate(member.node);
  members_.Remove(member);
  parts_.rule.Lost(member);
  if (member.task.role == Role::kWorker) slow_workers_.Forget(member.task.index);
  if (member.task.role == Role::kPs) ForgetWorkers();
}

void Registrar::ForgetWorkers() {
  for (Member& member : members_.all()) {
    if (member.task.role != Role::kWorker || !member.here()) continue;
    outbox_.Refuse(member.node, 0, Reason::Unregistered, "a ps was lost before the run began");
    Forget(member);
  }
}

}  // namespace dtrain
