#include "trainer/ps/worker_result.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "trainer/peer/peer_limits.h"

namespace dtrain {

namespace {

// Bounds a peer's wall clock, so that a difference of two does not overflow.
int64_t NanosIn(int64_t said) { return std::clamp<int64_t>(said, 0, static_cast<int64_t>(kMaxSteps)); }

}  // namespace

void WorkerResult::Take(const wire::Done& said) {
  done = true;
  local_steps = CountIn(said.local_steps());
  if (const auto loss = said.loss()) losses.Add(*loss);
  first_step_nanos = NanosIn(said.first_step_nanos());
  last_step_nanos = NanosIn(said.last_step_nanos());
  bytes_sent = CountIn(said.bytes_sent());
  bytes_received = CountIn(said.bytes_received());
  bytes_saved = CountIn(said.bytes_saved());
  accuracy = said.accuracy();
  if (said.figures() != nullptr) FiguresFromJson(said.figures()->str(), &figures);
  if (said.device() != nullptr) device = ShortText(said.device()->str());
  first_loss = said.first_loss();
}

void SumUp(const std::vector<WorkerResult>& workers, int64_t first_applied_nanos, const DoneBefore& before,
           RunSummary* summary) {
  int64_t first = 0, last = 0;
  double loss = 0;
  int trained = 0, with_loss = 0;
  for (const WorkerResult& result : workers) {
    summary->local_steps.push_back(result.local_steps);
    summary->worker_accuracy.push_back(std::isnan(result.accuracy) ? std::nullopt
                                                                   : std::optional<double>(result.accuracy));
    summary->workers.push_back(result.figures);
    summary->workers.back().rows = result.examples;
    summary->workers.back().leases = result.leases;
    summary->examples = AddCounts(summary->examples, result.examples);
    summary->gradients_skipped = AddCounts(summary->gradients_skipped, result.figures.gradients_skipped);
    summary->bytes_sent = AddCounts(summary->bytes_sent, result.bytes_sent);
    summary->bytes_received = AddCounts(summary->bytes_received, result.bytes_received);
    summary->bytes_saved = AddCounts(summary->bytes_saved, result.bytes_saved);
    if (result.done && !result.device.empty() && !summary->device) summary->device = result.device;
    // A worker that begins late sees what the others have learnt.
    if (!std::isnan(result.first_loss)) {
      summary->first_loss = std::max(summary->first_loss.value_or(result.first_loss), result.first_loss);
    }
    if (!result.done || result.local_steps == 0) continue;
    if (!result.losses.empty()) {
      loss += result.losses.Mean();
      ++with_loss;
    }
    if (result.figures.steps == 0) continue;  // it came back and took no more
    ++trained;
    first = first == 0 ? result.first_step_nanos : std::min(first, result.first_step_nanos);
    last = std::max(last, result.last_step_nanos);
  }
  if (with_loss > 0) summary->final_loss = loss / with_loss;
  if (trained == 0) return;
  // A worker that was lost and came back knows only its own start.
  if (first_applied_nanos != 0) first = std::min(first, first_applied_nanos);
  summary->first_step_nanos = first;
  summary->train_s = static_cast<double>(last - first) * 1e-9;
  const double seconds = static_cast<double>(last - std::max(first, before.until_nanos)) * 1e-9;
  if (seconds <= 0) return;
  summary->steps_per_s = static_cast<double>(summary->global_step - before.steps) / seconds;
  summary->examples_per_s = static_cast<double>(summary->examples - before.examples) / seconds;
}

}  // namespace dtrain
