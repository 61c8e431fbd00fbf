#include "trainer/leader/run_start.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/fault_point.h"
#include "trainer/peer/conversations.h"
#include "trainer/peer/form_message.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
StartBarrier::StartBarrier(const Config& config, TaskTable& members, const RunHistory& history, Logger& log,
                           TimePoint now)
    : config_(config), members_(members), history_(history), log_(log), begun_(now), tells_(now) {}

// Unset while a task is missing without which the run cannot begin.
std::optional<StartBarrier::Ready> StartBarrier::CountReady() const {
  Ready ready;
  for (const Member& member : members_.all()) {
    const bool is_ready = member.is_ready(), worker = member.task.role == Role::kWorker;
    if (!is_ready && (!worker || members_.FeedsOthers(member))) return std::nullopt;
    ready.tasks += is_ready ? 1 : 0;
    ready.workers += is_ready && worker ? 1 : 0;
  }
  return ready;
}

// The number of workers that a run needs to begin or to go on. A run that goes on waits for those that took
// part, and after some time goes on without those that it does not need.
int64_t StartBarrier::MinWorkers(TimePoint now) const {
  if (!history_.begun) return members_.min_workers();
  const auto workers = static_cast<int64_t>(config_.cluster.worker.size());
  const int64_t were_here = std::count(history_.here.begin(), history_.here.end(), true);
  if (config_.failure.worker_lost == WorkerLost::kWait) {
    return std::max(members_.min_workers(), were_here);
  }
  if (WaitedLong(now) && config_.failure.worker_lost == WorkerLost::kContinue) return 1;
  if (history_.here.empty()) return members_.min_workers();
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
  log_.Event(kEventRunStarted, LogLevel::kInfo,
             fmt::format("{} {} tasks are here after {:.2f} s{}",
                         all ? "all" : fmt::format("{} of", ready->tasks + 1), others + 1,
                         SecondsBetween(begun_, now), all ? "" : "; the others may join at any time"));
  return Enough{all};
}

std::string StartBarrier::Status() const {
  std::string unready;
  for (const Member& member : members_.all()) {
    if (!member.here() || member.is_ready()) continue;
    unready += (unready.empty() ? "" : ", ") + TaskName(member.task);
  }
  const std::string missing = members_.Missing(MinWorkers(Clock::now()));
  return fmt::format("joined {} of {}{}{}{}{}", members_.joined() + 1, members_.all().size() + 1,
                     missing.empty() ? "" : "; missing: ", missing,
                     unready.empty() ? "" : "; still preparing: ", unready);
}

double StartBarrier::MaxSeconds() const {
  return history_.begun ? config_.failure.wait_s : config_.failure.startup_timeout_s;
}

std::string StartBarrier::StatusUntil(TimePoint now) const {
  const bool waits = !members_.Missing(MinWorkers(now)).empty();
  return Status() + (waits ? GivesUpInText(begun_, MaxSeconds(), now) : "");
}

void StartBarrier::Check(TimePoint now) {
  const char* const key = history_.begun ? "failure.wait_s" : "failure.startup_timeout_s";
  const double max_s = MaxSeconds();
  if (!members_.Missing(MinWorkers(now)).empty() && SecondsBetween(begun_, now) > max_s) {
    const std::string& refused = members_.last_refusal();
    throw PeerLost("not all tasks came in {} s ({}); {}. Start them, or look at their logs.{}", max_s, key,
                   Status(), refused.empty() ? "" : " Refused: " + refused + ".");
  }
  if (!tells_.IsDue(now)) return;
  const bool waits = !members_.Missing(MinWorkers(now)).empty();
  log_.Info("waiting: {}{}", Status(), waits ? "; " + GivesUpText(config_, begun_, max_s) : "");
}

void RunPositions::Take(const Positions& positions, int64_t step) {
  first_ = positions;
  const auto workers = config_.cluster.worker.size();
  first_.local_steps.resize(workers);
  first_.examples.resize(workers);
  first_.losses.resize(workers);
  first_.progress.resize(workers);
  for (size_t worker = 0; worker < workers; ++worker) {
    Member& member = *members_.Worker(static_cast<int64_t>(worker));
    member.taken = first_.local_steps[worker];
    member.result.examples = first_.examples[worker];
    member.result.losses = first_.losses[worker];
    member.result.progress = first_.progress[worker];
  }
  first_step_ = step;
}

std::string RunPositions::Now(const std::optional<Patience>& patience, bool disturbed,
                              const std::vector<DataFingerprint>& data_of, const TakenSteps& taken) const {
  Positions now = first_;
  now.runs = taken.runs;
  now.of_workers.clear();
  const DataFingerprint chief = FingerprintIn(now, 0);
  const auto is_other = [&](const DataFingerprint& of) { return !DataDifference(of, chief).empty(); };
  if (std::any_of(data_of.begin(), data_of.end(), is_other)) now.of_workers = data_of;
  // Which rows a round had depends on timing.
  const bool by_timing = config_.data.split == Split::kDynamic && !FirstNondeterministicKey(config_).empty();
  now.disturbed = disturbed || by_timing;
  now.evaluations = patience ? patience->counted() : std::nullopt;
  for (size_t worker = 0; worker < now.local_steps.size(); ++worker) {
    const Member& member = *members_.Worker(static_cast<int64_t>(worker));
    now.local_steps[worker] = member.taken;
    now.examples[worker] = member.result.examples;
    now.losses[worker] = member.result.losses;
    now.progress[worker] = member.result.progress;
  }
  return ToJson(now);
}

LossSums RunPositions::Progress() const {
  LossSums sums = first_.other_progress;
  for (size_t worker = 0; worker < config_.cluster.worker.size(); ++worker) {
    sums += members_.Worker(static_cast<int64_t>(worker))->result.progress;
  }
  return sums;
}

int64_t RunPositions::first_examples() const {
  return std::accumulate(first_.examples.begin(), first_.examples.end(), first_.other_examples, AddCounts);
}

// Nothing is left for the worker to do, and nobody waits for its results.
bool RunStart::ComesTooLate(const Member& member, bool over) const {
  if (member.task.role != Role::kWorker) return false;
  return over || (parts_.steps.over() && !member.takes_part && !parts_.members.IsAwaited(member));
}

void RunStart::Tell(Member& member, uint64_t request, bool over) {
  member.ready_request = 0;
  if (ComesTooLate(member, over)) {
    member.told = false;
    return SendOver(member, request);
  }
  const bool worker = member.task.role == Role::kWorker;
  StartPoint point;
  if (worker) {
    member.takes_part = true;
    if (member.lost) parts_.log.Info("{} is back: the run goes on with it", parts_.members.NameOf(member));
    member.lost = false;
    if (!over) member.done = false;  // it left, but has more to do
    parts_.leases.Start(member);
    const StartPoint begins{member.taken, parts_.rule.StartClock(member)};
    point = parts_.rounds.Return(member).value_or(begins);
  }
  auto steps = static_cast<uint32_t>(member.open_steps);
  if (worker && !member.done) steps = point.again ? 1 : parts_.steps.GrantFirst(member);
  SendStart(member, request, steps, point);
}

// Names the workers that start together, until the first step is applied; later workers join those that run.
// When rounds wait for a lost worker, the list names it too.
void RunStart::SendStart(const Member& member, uint64_t request, uint32_t steps, const StartPoint& point) {
  const bool first = parts_.steps.applied() <= parts_.positions.first_step();
  const std::vector<uint32_t> together = first ? parts_.members.Expected() : std::vector<uint32_t>();
  const std::string dealt = parts_.positions.DealtText();
  const InputForm& fit = parts_.history.fit;
  const KnownCheckpoint newest = parts_.history.Newest();
  const FaultScope fault("start.begin");
  parts_.outbox.Answer(member.node, request, [&](auto& builder) {
    const auto dealt_text = dealt.empty() ? 0 : builder.CreateString(dealt);
    const auto inputs = IsFitted(fit) ? EncodeForm(fit, builder) : 0;
    const auto checkpoint = newest.where.empty() ? 0 : builder.CreateString(newest.where);
    const auto leases = member.is_worker() ? parts_.leases.Encode(member, builder) : 0;
    return wire::CreateStart(
        builder, steps, first && parts_.history.from_initial, static_cast<uint64_t>(point.local_step),
        builder.CreateVector(together), point.clock, point.resume, point.version, false, dealt_text, inputs,
        static_cast<uint64_t>(parts_.history.data.rows), parts_.history.data.labels, checkpoint,
        static_cast<uint64_t>(newest.step), static_cast<uint64_t>(parts_.history.decay_steps),
        parts_.history.data.features, leases);
  });
}

void RunStart::SendOver(const Member& member, uint64_t request) {
  parts_.log.Info("{} came when the run was over", TaskName(member.task));
  const FaultScope fault("start.begin");
  parts_.outbox.Answer(member.node, request, [&](auto& builder) {
    return wire::CreateStart(builder, 0, false, static_cast<uint64_t>(member.taken), 0, 0, false, 0, true);
  });
}

}  // namespace dtrain
