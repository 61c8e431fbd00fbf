#include "trainer/leader/lost_workers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "trainer/peer/conversations.h"

namespace dtrain {
namespace {

// How often the log says for whom the run waits.
constexpr milliseconds kTellEvery{10000};

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

bool IsAway(const Member& worker) { return worker.lost && !worker.done && !worker.here(); }

}  // namespace

void LostWorkers::NoteProcess(const Member& worker) {
  history_.processes.resize(config_.cluster.worker.size());
  RunHistory::Processes& seen = history_.processes[static_cast<size_t>(worker.task.index)];
  if (seen.latest == worker.process) return;
  seen.latest = worker.process;
  ++seen.count;
}

Loss LostWorkers::WhatIfLost(const Member& member, RunPhase phase) const {
  LossCase lost;
  lost.role = member.task.role;
  lost.phase = phase;
  lost.feeds = members_.FeedsOthers(member);
  lost.takes_part = member.takes_part;
  lost.awaited = members_.IsAwaited(member);
  lost.done = member.done;
  lost.others = std::any_of(members_.all().begin(), members_.all().end(), [&](const Member& other) {
    return &other != &member && other.here() && other.takes_part;
  });
  return DecideLoss(config_, lost);
}

std::string LostWorkers::WhyNeeded(const Member& member) const {
  if (!member.is_worker()) return std::string();
  if (config_.failure.worker_lost == WorkerLost::kFail) return "; failure.worker_lost is fail";
  return members_.FeedsOthers(member) ? "; it feeds all others (data.split: feed)"
                                      : "; no other worker is left to go on";
}

std::string LostWorkers::WhatIsLost(int64_t global_step) const {
  if (config_.checkpoint.dir.empty()) return LostStepsText(config_, global_step, std::nullopt);
  return LostStepsText(config_, global_step,
                       history_.checkpoint.empty() ? global_step : history_.checkpoint_step);
}

std::string LostWorkers::RowsText(const Member& member) const {
  if (!member.is_worker() || !member.takes_part || member.done) return std::string();
  if (config_.data.split == Split::kDynamic) return "; the others take its rows (data.split: dynamic)";
  if (config_.data.split == Split::kFull) return "; the others read the same rows (data.split: full)";
  return fmt::format("; nobody trains on its share of the rows (1 of {}) until it is back",
                     members_.max_workers());
}

// A parent that starts tasks again does so for each process that ends, seen here or not: more than the max
// were never started.
bool LostWorkers::IsStartedAgain(const Member& worker) const {
  const auto index = static_cast<size_t>(worker.task.index);
  const int64_t seen = index < history_.processes.size() ? history_.processes[index].count : 0;
  return seen <= config_.failure.restarts && config_.failure.restarts > 0;
}

TimePoint LostWorkers::ReturnsBy(const Member& worker) const {
  return worker.lost_at + Seconds(config_.failure.detect_s + static_cast<double>(kMaxRestartPauseS));
}

bool LostWorkers::MayReturn(TimePoint now) const {
  return std::any_of(members_.all().begin(), members_.all().end(), [&](const Member& member) {
    if (!member.lost || member.done) return false;
    return member.here() || (IsStartedAgain(member) && now < ReturnsBy(member));
  });
}

LostWorkers::Awaited LostWorkers::AwaitedNow(TimePoint now, bool at_end) const {
  Awaited awaited;
  for (const Member& member : members_.all()) {
    const bool returns = at_end && IsStartedAgain(member) && now < ReturnsBy(member);
    if (!IsAway(member) || !(waits() || returns)) continue;
    const TimePoint until = waits() ? member.lost_at + Seconds(config_.failure.wait_s) : ReturnsBy(member);
    const bool first = awaited.names.empty();
    awaited.until = first ? until : waits() ? std::min(awaited.until, until) : std::max(awaited.until, until);
    awaited.names += (first ? "" : ", ") + TaskName(member.task);
  }
  return awaited;
}

void LostWorkers::Tick(TimePoint now, bool at_end) {
  for (const Member& member : members_.all()) {
    if (!waits() || !member.lost || member.here()) continue;
    if (SecondsBetween(member.lost_at, now) <= config_.failure.wait_s) continue;
    throw PeerLost("{} was lost and is not back after {} s (failure.wait_s). Look at its log.",
                   members_.NameOf(member), config_.failure.wait_s);
  }
  const Awaited awaited = AwaitedNow(now, at_end);
  if (awaited.names.empty()) return told_.clear();
  // The line about the loss has said the same of a run that waits for every lost worker.
  if (told_.empty()) next_line_ = waits() ? now + kTellEvery : now;
  told_ = awaited.names;
  if (now < next_line_) return;
  next_line_ = now + kTellEvery;
  if (waits()) {
    return log_.Info("waiting for {}; gives up at {} with exit {}", awaited.names, TimeOfDay(awaited.until),
                     config_.failure.peer_lost_exit);
  }
  log_.Info("all others are done; waiting for {}, which may be started again; the run ends at {} without it",
            awaited.names, TimeOfDay(awaited.until));
}

std::string LostWorkers::WaitingText(TimePoint now, bool at_end) const {
  const Awaited awaited = AwaitedNow(now, at_end);
  if (awaited.names.empty()) return std::string();
  const double left_s = std::max(SecondsBetween(now, awaited.until), 0.0);
  return waits() ? fmt::format("waiting for {}; gives up in {:.0f} s", awaited.names, left_s)
                 : fmt::format("waiting for {}; ends without it in {:.0f} s", awaited.names, left_s);
}

}  // namespace dtrain
