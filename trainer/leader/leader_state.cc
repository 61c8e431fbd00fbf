// LocalLeader with a replica of ps 0 (failure.replicas): the state that it has there, and how another process
// of ps 0, or ps 1 in its place, leads the run on from it.
#include <fmt/format.h>

#include "base/archive.h"
#include "base/error.h"
#include "trainer/config/config.h"
#include "trainer/leader/local_leader.h"
#include "trainer/ps/replica_link.h"
#include "trainer/ps/run_history.h"
#include "trainer/summary/summary.h"

namespace dtrain {
namespace {

// Sections of the state: the members follow.
enum : size_t { kRunSection, kNowSection, kLeasesSection, kMemberSections };

}  // namespace

void LocalLeader::RunState(Archive& archive) {
  archive(history_.feed_token, history_.first_step, history_.first_examples, history_.first_nanos,
          history_.training_since, history_.here, history_.processes, history_.peers_returned,
          history_.from_initial, *history_.patience, history_.origin, history_.decay_steps,
          history_.other_data, history_.inputs, history_.fit, history_.data, history_.data_of, history_.known,
          history_.known_by, positions_, data_);
}

void LocalLeader::StateNow(Archive& archive) {
  archive(phase_, out_of_time_, all_done_, history_.lost_step, history_.lost_since, history_.took_part,
          history_.disturbed, history_.steps_given_again, history_.last_save, history_.checkpoint,
          history_.checkpoint_step, progressive_, evaluations_, steps_, rounds_, stop_, end_, replicas_);
  if (checkpoints_) archive(*checkpoints_);
  bool goes_back = replicas_.Away() != nullptr || !gone_.empty();
  archive(goes_back);
  if (goes_back && archive.reads()) GiveUpPs("ps 0 was lost while another ps was");
}

void LocalLeader::MemberState(Member& member, Archive& archive) {
  net::NodeId node = member.node;
  archive(node);
  if (archive.reads()) members_.Restore(member, node);
  archive(member);
  if (!member.is_worker()) return;
  RuleOfWorker of;
  if (!archive.reads()) of = parts_.rule.OfWorker(member.task.index);
  archive(of);
  if (archive.reads()) parts_.rule.SetOfWorker(member.task.index, of);
}

void LocalLeader::TellState(bool all, const PutSection& put) {
  const auto tell = [&](size_t section, const auto& state) {
    archive_.Clear();
    state(archive_);
    put(section, archive_.bytes());
  };
  if (all) tell(kRunSection, [this](Archive& archive) { RunState(archive); });
  tell(kNowSection, [this](Archive& archive) { StateNow(archive); });
  if (leases_.on()) tell(kLeasesSection, [this](Archive& archive) { archive(leases_); });
  for (size_t i = 0; i < members_.all().size(); ++i) {
    tell(kMemberSections + i, [&](Archive& archive) { MemberState(members_.all()[i], archive); });
  }
}

void LocalLeader::TakeOver(const StateImage& state) {
  const TimePoint since = history_.lost_since;
  const auto take = [&](size_t section, const auto& read) {
    Archive archive(state.section(section));
    read(archive);
    if (archive.failed())
      throw RolledBack{"the state of the run cannot be read from the replica of ps 0", true};
  };
  for (size_t i = 0; i < members_.all().size(); ++i) {
    take(kMemberSections + i, [&](Archive& archive) { MemberState(members_.all()[i], archive); });
  }
  take(kRunSection, [this](Archive& archive) { RunState(archive); });
  leases_.BeginAt(positions_.plan(), data_.facts() ? data_.facts()->rows : std::nullopt);
  if (leases_.on()) take(kLeasesSection, [this](Archive& archive) { archive(leases_); });
  take(kNowSection, [this](Archive& archive) { StateNow(archive); });
  history_.replica = 0;
  log_.Event(
      kEventPsLost, LogLevel::kWarning,
      fmt::format("ps 0 was lost {:.2f} s ago; this process leads the run on at global step {}, from its "
                  "replica on ps 1",
                  SecondsSince(since), global_step()));
  recovery_.Returned("ps 0", since);
  status_.Begin();
  if (parts_.task.summary != nullptr) parts_.task.summary->Begin(global_step());
  if (parts_.task.on_begun) parts_.task.on_begun(IdentityOf(history_.run, members_));
  replicas_.TakeOver();
  rounds_.TakeOver();
  if (checkpoints_) checkpoints_->TakeOver();
  if (keeps_best()) evaluations_.set_best_saved(checkpoints_->BestScore());
  steps_.ServeWaiting();
}

void LocalLeader::EndInPlace(const std::string& why) {
  in_place_ = true;
  recovery_.Returned("", TimePoint());  // no step follows
  replicas_.GiveUp();
  if (phase_ == RunPhase::kEnded || all_done_) return;  // what is left to do needs nobody else
  gone_ = why;
  steps_.Close();
  // If ps 1 does not see the directory of ps 0, it has one of its own.
  const bool same_directory = members_.Ps(1).sees_directory;
  for (Member& member : members_.all()) member.sees_directory &= same_directory;
  if (!checkpoints_ || checkpoints_->HasAllOf(global_step())) return;  // AllHear() ends it
  log_.Event(kEventPsLost, LogLevel::kWarning, why + ": ps 1 takes the last checkpoint; then the run ends");
  checkpoints_->AskWhole();
}

void LocalLeader::AllHear() {
  all_hear_ = true;
  if (gone_.empty()) return;
  if (end_error_) EndWithoutPs(*end_error_);
  if (checkpoints_ && !checkpoints_->HasAllOf(global_step())) {
    return checkpoints_->idle() ? checkpoints_->AskWhole() : void();  // steps were still on their way
  }
  if (stop_.asked()) EndStopped("", false, "; " + gone_);
  throw PeerLost("{}. Look at its log. {}", gone_, lost_workers_.WhatIsLost(global_step()));
}

void LocalLeader::Fill() {
  parts_.replica->Fetch(history_.replica);
  if (parts_.replica->fetching() && parts_.replica->TakeReport(Clock::now())) {
    throw RolledBack{"ps 0 was lost, and its replica on ps 1 could not be fetched", true};
  }
}

}  // namespace dtrain
