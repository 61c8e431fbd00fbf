#include "trainer/leader/run_stop.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "base/signals.h"
#include "trainer/config/config.h"
#include "trainer/peer/abort.h"
#include "trainer/result/run_summary.h"

namespace dtrain {
namespace {

// The share of failure.grace_s for saving; the rest is for the end.
constexpr double kSavingShare = 0.9;

std::string LostText(int64_t lost, const char* behind) {
  return lost <= 0 ? ""
                   : fmt::format("; {}{} {} lost", Plural(lost, "step"), behind, lost == 1 ? "is" : "are");
}

}  // namespace

RunSummary SummarySoFar(const TaskTable& members, const RunHistory& history, int64_t global_step) {
  RunSummary summary;
  summary.identity = IdentityOf(history.run, members);
  summary.global_step = global_step;
  for (const Member& member : members.all()) {
    if (!member.is_worker()) continue;
    summary.local_steps.push_back(member.taken);
    if (member.lost && !member.here() && !member.done) summary.lost_workers.push_back(member.task.index);
  }
  if (!history.checkpoint.empty()) summary.checkpoint = history.checkpoint;
  summary.steps_given_again = history.steps_given_again;
  return summary;
}

void RunStop::Ask(int signal, const std::string& to, TimePoint now) {
  signal_ = signal;
  cause_ = SignalName(signal) + (to.empty() ? "" : " to " + to);
  Begin(cause_, now);
}

void RunStop::AskForFault(const std::string& worker, const std::string& how, TimePoint now) {
  fault_ = fmt::format("{} ended the run {}", worker, how);
  Begin(worker + " has met a fault in its data", now);
}

void RunStop::Begin(const std::string& why, TimePoint now) {
  asked_at_ = now;
  const char* const what =
      config_.checkpoint.dir.empty() ? "ends, and nothing is saved" : "is saved and ends";
  log_.Info("{}: the run {}", why, what);
}

std::string RunStop::Overdue(TimePoint now) const {
  const double max_s = config_.failure.grace_s * kSavingShare;
  if (!asked() || SecondsBetween(asked_at_, now) <= max_s) return std::string();
  return fmt::format("it took longer than {:.3g} s (failure.grace_s)", max_s);
}

void RunStop::End(const Reached& reached, const std::string& unsaved) const {
  const bool saves = !config_.checkpoint.dir.empty(), kept = saves && unsaved.empty();
  // Outside sync the run may have applied a few more gradients after the checkpoint.
  RunSummary summary = SummarySoFar(
      members_, history_, kept && reached.saved_step >= 0 ? reached.saved_step : reached.global_step);
  summary.status = "stopped";
  const std::string& newest = history_.checkpoint;
  const bool goes_back = reached.starting && history_.begun && !newest.empty();
  if (goes_back) {
    summary.global_step = history_.checkpoint_step;
    summary.local_steps.clear();
  }
  const std::string which = newest.empty() ? "there is no checkpoint" : "the newest checkpoint is " + newest;
  const bool tells_more = !kept || !fault_.empty();
  const int64_t reached_step = goes_back ? history_.lost_step : tells_more ? reached.global_step : 0;
  const std::string lost = LostText(reached_step - (newest.empty() ? 0 : history_.checkpoint_step),
                                    newest.empty() ? "" : " behind it");
  const std::string what = fault_.empty() ? "stopped by " + cause_ : fault_ + " The run stopped";
  std::string text = fmt::format("{} at global step {}; ", what, summary.global_step);
  if (!saves) {
    text += kNothingKept;
  } else if (!kept) {
    text += fmt::format("nothing was saved: {}; {}{}", unsaved, which, lost);
  } else if (reached.starting && newest.empty()) {
    text = fmt::format("stopped by {} before {}; what is in {} stays as it is", cause_,
                       history_.begun ? "the run went on from its newest checkpoint" : "a step was taken",
                       config_.checkpoint.dir);
  } else {
    text += which + lost + reached.more;
  }
  if (!fault_.empty()) {
    const bool goes_on = saves && !newest.empty();
    throw RunEnded(ExitCode::kUser, text + (goes_on ? ". Start it again to go on from there." : "."));
  }
  throw RunStopped(kept ? StopExitCode(signal_) : ExitCode::kInternal, text, std::move(summary));
}

namespace {

// How long a ps 0 tells the other tasks why the run ends, and how long it waits for tasks that have not
// joined.
constexpr milliseconds kMaxAbortNotice{1000};
constexpr milliseconds kNewcomers{2000};

class AbortNotice {
 public:
  AbortNotice(const AbortNews& news, TaskTable& members, net::Channel& channel, Outbox& outbox)
      : news_(news), members_(members), channel_(channel), outbox_(outbox) {
    for (const Member& member : members.all()) {
      if (member.here()) waiting_.insert(member.node);
    }
  }

  void Send(milliseconds every) {
    const TimePoint begun = Clock::now();
    for (TimePoint now = begun; IsWorthIt(now - begun); now = Clock::now()) {
      Tell();
      Listen(now + every);
    }
    if (untold_) Tell();
  }

 private:
  bool IsWorthIt(Clock::duration passed) const {
    return (passed < kNewcomers && AwaitsNewcomers()) || (passed < kMaxAbortNotice && !waiting_.empty());
  }

  // A task that is just starting belongs to a stopped run, whether that could do without it or not.
  bool AwaitsNewcomers() const {
    const bool stopped = news_.summary != nullptr;
    if (stopped) return !news_.supervised && !members_.Missing(members_.max_workers()).empty();
    const bool peer_lost = news_.exit_code == static_cast<int>(ExitCode::kPeerLost);
    return !peer_lost && !members_.Missing(members_.min_workers()).empty();
  }

  void Tell() {
    untold_ = false;
    const auto abort = [&](auto& builder) {
      return CreateAbort(builder, news_.exit_code, news_.from, news_.text, news_.summary);
    };
    for (auto node = waiting_.begin(); node != waiting_.end();) {
      outbox_.Send(*node | 1, 0, abort);  // the heartbeat thread reads it even when the task is busy
      node = outbox_.Send(*node, 0, abort) == net::SendResult::kGone ? waiting_.erase(node) : std::next(node);
    }
  }

  // Until `deadline`, whatever comes: drops the tasks that say Bye, and lets in those that belong to the run.
  void Listen(TimePoint deadline) {
    net::NodeId from = 0;
    net::Message message;
    for (bool first = true; first || Clock::now() < deadline; first = false) {
      if (channel_.Receive(deadline, &from, &message) != net::ReceiveResult::kMessage) return;
      const wire::Envelope* envelope = net::Decode(message);
      if (envelope == nullptr) continue;
      if (envelope->body_type() == wire::Body::Bye) waiting_.erase(from);
      const wire::Hello* hello = envelope->body_as_Hello();
      const auto closed = [](net::NodeId) { return false; };
      if (hello != nullptr && members_.Admit(from, *hello, closed).welcome) {
        waiting_.insert(from);
        untold_ = true;
        return;
      }
      if (waiting_.empty()) return;
    }
  }

  const AbortNews& news_;
  TaskTable& members_;
  net::Channel& channel_;
  Outbox& outbox_;
  std::set<net::NodeId> waiting_;
  bool untold_ = false;  // the last one that was let in
};

}  // namespace

void TellOfAbort(const AbortNews& news, milliseconds every, TaskTable& members, net::Channel& channel,
                 Outbox& outbox) {
  AbortNotice(news, members, channel, outbox).Send(every);
}

}  // namespace dtrain
