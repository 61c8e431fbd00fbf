#include "trainer/ps/run_end.h"

#include <vector>

#include "trainer/config/config.h"
#include "trainer/ps/worker_result.h"

namespace dtrain {
namespace {

constexpr size_t kLongestReport = 256 * 1024;
// The summary, which has to fit into a header.
constexpr size_t kLongestEnd = net::kMaxHeaderBytes - 64 * 1024;
// How long ps 0 stays after the end for those who have not said Bye.
constexpr milliseconds kFarewell{3000};

}  // namespace

RunEnd::RunEnd(const Config& config, Membership& members, const Standings& standings,
               const RunHistory& history, Outbox& outbox, Logger& log)
    : config_(config),
      members_(members),
      standings_(standings),
      history_(history),
      outbox_(outbox),
      log_(log) {}

bool RunEnd::TakeReport(const wire::Report& report, const Reached& reached) {
  const bool too_long = report.json()->size() > kLongestReport;
  if (too_long || !FromWireJson(report.json()->str(), &summary_)) return false;
  Complete(reached);
  if (config_.train.mode == TrainMode::kSync && reached.disturbed) {
    log_.Info("not the weights of an undisturbed run: rounds went on without a worker, or before it came");
  }
  reported_ = true;
  return true;
}

// The steps that it has from a checkpoint may be of an earlier run, but not where this ps 0 came into one
// that was under way.
bool RunEnd::TookPart(const Member& member) const {
  const auto index = static_cast<size_t>(member.task.index);
  const bool started = index < history_.took_part.size() && history_.took_part[index];
  return started || (history_.peers_returned && member.taken > 0);
}

void RunEnd::Complete(const Reached& reached) {
  const bool nothing_left = reached.global_step == history_.first_step && reached.global_step > 0;
  summary_.status = nothing_left ? "already_done" : "done";
  summary_.deterministic = !reached.disturbed && FirstNondeterministicKey(config_).empty();
  summary_.global_step = reached.global_step;
  std::vector<WorkerResult> results;
  for (const Member& member : members_.all()) {
    if (member.task.role != Role::kWorker) continue;
    const Standing& standing = standings_.Of(member);
    results.push_back(standing.result);
    if (standing.done) continue;
    results.back().local_steps = member.taken;
    (TookPart(member) ? summary_.lost_workers : summary_.absent_workers).push_back(member.task.index);
  }
  summary_.examples = reached.other_examples;
  // A ps 0 that came back knows the steps of its own time.
  const int64_t since = history_.peers_returned ? history_.first_nanos : 0;
  SumUp(results, reached.first_applied_nanos, {history_.first_step, history_.first_examples, since},
        &summary_);
}

void RunEnd::Tell(TimePoint now) {
  if (!history_.checkpoint.empty()) summary_.checkpoint = history_.checkpoint;
  summary_json_ = ToWireJson(summary_);
  if (summary_json_.size() > kLongestEnd) {
    log_.Warning("too many workers: where the time of each went is left out of the result");
    summary_.workers.clear();
    summary_json_ = ToWireJson(summary_);
  }
  told_at_ = now;
  for (const Member& member : members_.all()) {
    if (standings_.Of(member).end_request != 0) Send(member);
  }
}

void RunEnd::Send(const Member& member) {
  outbox_.Send(member.node, standings_.Of(member).end_request,
               [&](auto& builder) { return wire::CreateEnd(builder, builder.CreateString(summary_json_)); });
}

bool RunEnd::Finished(TimePoint now) const { return now - told_at_ > kFarewell || standings_.AllTold(); }

}  // namespace dtrain
