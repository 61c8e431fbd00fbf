#include "trainer/ps/start_barrier.h"

#include <algorithm>

#include "base/error.h"

namespace dtrain {
namespace {

constexpr milliseconds kStatusEvery{5000};

}  // namespace

StartBarrier::StartBarrier(const Config& config, Membership& members, const Standings& standings,
                           const RunHistory& history, Logger& log, TimePoint now)
    : config_(config),
      members_(members),
      standings_(standings),
      history_(history),
      log_(log),
      begun_(now),
      next_status_(now + kStatusEvery) {}

// Unset while somebody is missing without whom the run cannot begin.
std::optional<StartBarrier::Ready> StartBarrier::CountReady() const {
  Ready ready;
  for (const Member& member : members_.all()) {
    const bool is_ready = standings_.IsReady(member), worker = member.task.role == Role::kWorker;
    if (!is_ready && (!worker || members_.FeedsOthers(member))) return std::nullopt;
    ready.tasks += is_ready ? 1 : 0;
    ready.workers += is_ready && worker ? 1 : 0;
  }
  return ready;
}

// How many workers a run needs to begin, or to go on: then those that took part, for some time; after that it
// goes on without those that it can do without.
int64_t StartBarrier::MinWorkers(TimePoint now) const {
  if (!history_.begun) return members_.least_workers();
  const auto workers = static_cast<int64_t>(config_.cluster.worker.size());
  const int64_t were_here = std::count(history_.here.begin(), history_.here.end(), true);
  if (config_.failure.worker_lost == WorkerLost::kWait) {
    return std::max(members_.least_workers(), were_here);
  }
  if (WaitedLong(now) && config_.failure.worker_lost == WorkerLost::kContinue) return 1;
  if (history_.here.empty()) return members_.least_workers();
  return std::clamp<int64_t>(were_here, 1, workers);
}

bool StartBarrier::WaitedLong(TimePoint now) const {
  return others_ready_ != TimePoint() && SecondsBetween(others_ready_, now) > 2 * config_.failure.detect_s;
}

std::optional<StartBarrier::Enough> StartBarrier::Look(TimePoint now) {
  const std::optional<Ready> ready = CountReady();
  if (!ready) {
    others_ready_ = TimePoint();
    return std::nullopt;
  }
  if (others_ready_ == TimePoint()) others_ready_ = now;
  if (ready->workers < MinWorkers(now)) return std::nullopt;
  const size_t others = members_.all().size();
  const bool all = ready->tasks == others;
  log_.Info("{} {} tasks are here after {:.2f} s{}", all ? "all" : fmt::format("{} of", ready->tasks + 1),
            others + 1, SecondsBetween(begun_, now), all ? "" : "; the others may join at any time");
  return Enough{all};
}

std::string StartBarrier::Status() const {
  std::string unready;
  for (const Member& member : members_.all()) {
    if (!member.here() || standings_.IsReady(member)) continue;
    unready += (unready.empty() ? "" : ", ") + TaskName(member.task);
  }
  const std::string missing = members_.Missing();
  return fmt::format("joined {} of {}{}{}{}{}", members_.joined() + 1, members_.all().size() + 1,
                     missing.empty() ? "" : "; missing: ", missing,
                     unready.empty() ? "" : "; still preparing: ", unready);
}

void StartBarrier::Check(TimePoint now) {
  const char* const key = history_.begun ? "failure.wait_s" : "failure.startup_timeout_s";
  const double most = history_.begun ? config_.failure.wait_s : config_.failure.startup_timeout_s;
  if (!members_.Missing().empty() && SecondsBetween(begun_, now) > most) {
    const std::string& refused = members_.last_refusal();
    throw PeerLost("not all tasks came in {} s ({}); {}. Start them, or look at their logs.{}", most, key,
                   Status(), refused.empty() ? "" : " Refused: " + refused + ".");
  }
  if (now < next_status_) return;
  next_status_ = now + kStatusEvery;
  log_.Info("waiting: {}", Status());
}

}  // namespace dtrain
