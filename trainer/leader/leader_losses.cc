// LocalLeader when tasks are lost, come back, or do not: what becomes of the run.
#include <fmt/format.h>

#include "base/error.h"
#include "trainer/config/config.h"
#include "trainer/leader/local_leader.h"
#include "trainer/peer/abort.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/this_host.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/run_history.h"

namespace dtrain {

void LocalLeader::Left(Member& member) {
  steps_.GiveBack(member);
  const bool was_done = member.done;
  if (member.takes_part && begun() && !member.done) {
    member.lost = true;
    member.lost_at = Clock::now();
    history_.disturbed |= !RoundsWaitForLost(config_);
  }
  member.Leave();
  if (member.is_worker() && !was_done) leases_.Lost(member);
  if (member.is_worker()) slow_workers_.Forget(member.task.index);
  if (member.is_worker() && checkpoints_) checkpoints_->ForgetCandidate(member);
  status_.Forget(member);
  if (phase_ == RunPhase::kEnded) member.told = true;
  steps_.ServeWaiting();
  CloseWhenAllDone(Clock::now());
}

// A worker or a ps may come back before its loss was noticed.
void LocalLeader::OnWelcome(Member& member, bool replaces) {
  if (member.is_worker()) lost_workers_.NoteProcess(member);
  if (!member.is_worker() && begun()) OnPsAgain(member, replaces);
  const bool fatal = config_.failure.worker_lost == WorkerLost::kFail && replaces;
  if (fatal && lost_workers_.WhatIfLost(member, phase_) == Loss::kEnds) {
    OnLost(member, members_.NameOf(member) + " was restarted during the run");
  }
}

// One that comes back has lost its weights.
void LocalLeader::OnPsAgain(Member& ps, bool replaces) {
  if (replicas_.IsRecovering(ps) && !replaces) return;  // it was missed
  const std::string why = members_.NameOf(ps) + " was restarted during the run";
  if (replicas_.CanRecover(ps)) return Recover(ps, why);
  GiveUpPs(why + " and has lost its weights" + replicas_.WhyNot(ps));
}

void LocalLeader::GiveUpPs(const std::string& why) {
  if (RecoversPs(config_)) RollBack(why);
  throw PeerLost("{}. {}", why, lost_workers_.WhatIsLost(global_step()));
}

void LocalLeader::Recover(Member& ps, const std::string& why) {
  if (!gone_.empty()) return;  // nobody waits for it any more
  replicas_.Lost(ps, Clock::now());
  if (checkpoints_) checkpoints_->Suspend(members_.NameOf(ps) + " was lost");
  log_.Event(
      kEventPsLost, LogLevel::kWarning,
      fmt::format(
          "{}; the run waits for it up to {} s (failure.wait_s), and it goes on from its replica on {}", why,
          config_.failure.wait_s, replicas_.HolderOf(ps)));
}

void LocalLeader::EndRecovery(Member& ps) {
  recovery_.Returned(members_.NameOf(ps), replicas_.Recovered(ps));
  if (steps_.over() || members_.AllDone()) recovery_.End(global_step());
  if (checkpoints_) checkpoints_->Resume();
  if (keeps_best()) evaluations_.set_best_saved(checkpoints_->BestScore());
}

// In sync with a norm of rounds the others have counted a round that they cannot apply without the ps.
void LocalLeader::EndWithout(Member& ps, const std::string& why) {
  const bool saved = !checkpoints_ || checkpoints_->HasAllOf(global_step());
  if (saved && !stop_.asked()) {
    throw PeerLost("{}. Look at its log. {}", why, lost_workers_.WhatIsLost(global_step()));
  }
  gone_ = why;
  if (ps.task.index == 1) replicas_.GiveUp();
  if (NormOfRounds(config_.train)) {
    EndWithoutPs("with train.optimizer.clip_norm its round cannot be ended from its replica");
  }
  log_.Event(kEventPsLost, LogLevel::kWarning,
             fmt::format("{}: its part of the last checkpoint is from its replica on {}; then the run ends",
                         why, replicas_.HolderOf(ps)));
  steps_.Close();
  checkpoints_->StandIn(ps, replicas_.Holder(ps), replicas_.EpochFor(ps));
}

void LocalLeader::EndWithoutPs(const std::string& error) {
  const std::string from =
      in_place_ ? fmt::format("has the part of ps 0 from its replica on ps 1 ({})", HostName())
                : fmt::format("has its part from its replica on {}", replicas_.AwaitedHolder());
  if (stop_.asked()) {
    const std::string unsaved = error.empty() ? "" : fmt::format("{}: {}", gone_, error);
    EndStopped(unsaved, false, fmt::format("; {}, and it {}", gone_, from));
  }
  if (error.empty()) {
    throw PeerLost("{}. The checkpoint of global step {} in {} {}. Start the run again.", gone_,
                   history_.checkpoint_step, history_.checkpoint, from);
  }
  throw PeerLost(
      "{}. Look at its log. The last checkpoint, which was to have its part from its replica, "
      "failed: {}. {}",
      gone_, error, lost_workers_.WhatIsLost(global_step()));
}

void LocalLeader::OnOverdue(Member& member, const std::string& why) {
  // Its heartbeat thread reads this and ends the task: the run does not wait for it any more.
  if (members_.Stuck(member)) {
    outbox_.Send(member.node | 1, 0, [&](auto& builder) {
      return CreateAbort(builder, static_cast<int>(ExitCode::kPeerLost), parts_.task.self, why);
    });
  }
  if (parts_.task.on_lost) parts_.task.on_lost(member.task, why);
  OnLost(member, why);
}

// Ends the run if it diverges or has not begun, or, behind a checkpoint, if the worker waits for that;
// otherwise counts the task as lost.
bool LocalLeader::OnAbort(Member& member, const wire::Abort& abort, bool waits) {
  // A ps that the user must mend does not come back by itself, and no checkpoint helps.
  const bool mends = replicas_.on() && !member.is_worker() && !replicas_.IsRecovering(member) &&
                     abort.exit_code() == static_cast<int>(ExitCode::kUser);
  const bool of_run = mends || abort.exit_code() == static_cast<int>(ExitCode::kDiverged);
  const std::string name = members_.NameOf(member);
  const std::string how =
      fmt::format("with exit code {}: {}", abort.exit_code(), ShortText(abort.text()->str()));
  const bool ends = !waits && !EndsAnyhow(member) && !replicas_.CanRecover(member) &&
                    lost_workers_.WhatIfLost(member, phase_) == Loss::kEnds;
  if (of_run || starting() || ends) {
    throw RunEnded(CauseOf(abort),
                   fmt::format("{} ended the run {}{}", name, how, ends ? replicas_.WhyNot(member) : ""));
  }
  if (waits && phase_ == RunPhase::kRunning) {
    if (stop_.asked()) return false;
    stop_.AskForFault(name, how, Clock::now());
    SaveAndEnd();
    return false;
  }
  OnLost(member, fmt::format("{} ended {}", name, how));
  return true;
}

// Ends the run, or lets it go on, by failure.worker_lost.
void LocalLeader::OnLost(Member& member, const std::string& why) {
  if (replicas_.CanRecover(member)) return Recover(member, why);
  const bool needless = (stop_.asked() && member.is_worker()) || EndsAnyhow(member);
  const Loss loss = needless ? Loss::kGoesOn : lost_workers_.WhatIfLost(member, phase_);
  if (loss == Loss::kRollsBack && !in_place_) RollBack(why + replicas_.WhyNot(member));
  if (loss == Loss::kEnds || loss == Loss::kRollsBack) {
    if (checkpoints_) checkpoints_->directory().CheckClaim();  // another ps 0 may have it by now
    throw PeerLost("{}{}{}. Look at its log.{}", why, lost_workers_.WhyNeeded(member),
                   replicas_.WhyNot(member),
                   member.is_worker() ? "" : " " + lost_workers_.WhatIsLost(global_step()));
  }
  const std::string waits =
      fmt::format("; the run waits for it up to {} s (failure.wait_s)", config_.failure.wait_s);
  const std::string goes_on =
      begun() ? "; the run goes on without it" + lost_workers_.RowsText(member) : std::string();
  log_.Event(member.is_worker() ? kEventWorkerLost : kEventPsLost, LogLevel::kWarning,
             why + (loss == Loss::kWaits ? waits : goes_on));
}

// All tasks start again from the newest checkpoint; this LocalLeader is dropped. A run that is to stop ends
// here, while its tasks are connected and hear of it.
void LocalLeader::RollBack(const std::string& why) {
  recovery_.Begin(global_step());
  if (stop_.asked()) {
    log_.Event(kEventPsLost, LogLevel::kWarning, why + "; the run ends without what it has not saved");
    EndStopped("", /*goes_back=*/true);
  }
  checkpoints_->directory().CheckClaim();           // the next one may find what another run has left
  history_.disturbed |= config_.eval.patience > 0;  // an evaluation may have been cut short
  history_.here = members_.WorkersNow();
  throw RolledBack{why, true};
}

}  // namespace dtrain
