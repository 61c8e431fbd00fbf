#include "trainer/leader/status_report.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "base/machine_memory.h"
#include "base/printable.h"
#include "trainer/config/config.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/this_host.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

constexpr size_t kStalenessSum = 6, kStalenessCount = 7;  // in the counts of a task
// The longest document: a message's header has room for it and its other fields.
constexpr size_t kMaxBytes = net::kMaxHeaderBytes - 4096;
constexpr milliseconds kSampleEvery{500};
constexpr const char* kParts[] = {"data", "compute", "hooks", "wait", "network"};

template <typename Number>
Json OrNull(std::optional<Number> number) {
  return number && std::isfinite(static_cast<double>(*number)) ? Json(*number) : Json(nullptr);
}

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(Printable(text)); }

// When a checkpoint was written: a run that goes on from one did not write it.
int64_t WrittenAt(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return WallNanos();
  return about.st_mtim.tv_sec * int64_t{1'000'000'000} + about.st_mtim.tv_nsec;
}

bool IsFailed(TaskId task, const StatusReport::Now& now) {
  return now.failed && now.failed->role == task.role && now.failed->index == task.index;
}

// `begun`: the run had all that it needs before.
const char* StateAtEnd(const Member& member, const StatusReport::Now& now, bool begun) {
  if (member.done || (now.done && !member.is_worker())) return "done";
  const bool failed = IsFailed(member.task, now);
  if (failed && !now.failed_by_loss) return "failed";
  if (failed && (begun || member.here())) return "lost";
  if (member.here()) return "ended";
  return member.lost || (begun && !member.is_worker()) ? "lost" : "missing";
}

const char* StateOf(const Member& member, const StatusReport::Now& now, bool begun) {
  if (now.ended) return StateAtEnd(member, now, begun);
  if (member.done) return "done";
  if (!member.here()) return member.lost || (begun && !member.is_worker()) ? "lost" : "missing";
  return member.ready || member.takes_part ? "here" : "preparing";
}

// The share of a worker's time in each part of its steps.
template <size_t kCounts>
Json SharesOf(const PaceWindow<kCounts>& window) {
  int64_t all = 0;
  for (size_t part = 0; part < std::size(kParts); ++part) all += std::max<int64_t>(window.Of(1 + part), 0);
  if (all <= 0) return nullptr;
  Json shares = Json::object();
  for (size_t part = 0; part < std::size(kParts); ++part) {
    const auto time = static_cast<double>(std::max<int64_t>(window.Of(1 + part), 0));
    shares[kParts[part]] = std::round(1000 * time / static_cast<double>(all)) / 1000;
  }
  return shares;
}

// Adds the traffic to `object`, which has that of nobody, or of others. A task that has received nothing has
// not told its traffic yet.
void AddTraffic(const Traffic& traffic, Json* object) {
  const auto add = [&](const char* key, uint64_t bytes) {
    Json& sum = (*object)[key];
    if (traffic.received > 0) sum = AddCounts(sum.is_null() ? 0 : sum.get<int64_t>(), CountIn(bytes));
  };
  add("bytes_sent", traffic.sent);
  add("bytes_received", traffic.received);
  add("bytes_saved", traffic.saved);
}

}  // namespace

StatusReport::StatusReport(const Config& config, const TaskTable& members, const RunHistory& history)
    : config_(config),
      members_(members),
      history_(history),
      begun_nanos_(ProcessStartWallNanos()),
      ps_(config.cluster.ps.size()),
      workers_(config.cluster.worker.size()) {}

StatusReport::Pace& StatusReport::PaceOf(TaskId task) {
  return (task.role == Role::kPs ? ps_ : workers_)[static_cast<size_t>(task.index)];
}

int64_t StatusReport::Examples() const {
  int64_t examples = 0;
  for (const Member& member : members_.all()) examples += member.result.examples;
  return examples;
}

void StatusReport::Tick(TimePoint now, int64_t global_step) {
  if (now < next_sample_) return;
  next_sample_ = now + kSampleEvery;
  run_.Add(now, {global_step, Examples()});
  if (history_.checkpoint == checkpoint_) return;
  checkpoint_ = history_.checkpoint;
  checkpoint_nanos_ = WrittenAt(checkpoint_);
}

void StatusReport::OnHeartbeat(const Member& member, const wire::Heartbeat& beat, TimePoint now) {
  Pace& pace = PaceOf(member.task);
  pace.memory_bytes = CountIn(beat.memory_bytes());
  pace.traffic = {beat.bytes_sent(), beat.bytes_received(), beat.bytes_saved()};
  if (beat.parts_us() == nullptr || beat.parts_us()->size() != std::size(kParts)) return;
  TaskWindow::Counts counts{CountIn(beat.steps())};
  for (size_t part = 0; part < std::size(kParts); ++part) {
    counts[1 + part] = CountIn(beat.parts_us()->Get(static_cast<flatbuffers::uoffset_t>(part)));
  }
  counts[kStalenessSum] = CountIn(beat.staleness_sum());
  counts[kStalenessCount] = CountIn(beat.staleness_count());
  pace.window.Add(now, counts);
}

// A worker that is done has told all of its traffic; the last heartbeat may be older.
Traffic StatusReport::TrafficOf(const Member& member) const {
  const WorkerResult& result = member.result;
  if (!result.done) return PaceOf(member.task).traffic;
  return {static_cast<uint64_t>(result.bytes_sent), static_cast<uint64_t>(result.bytes_received),
          static_cast<uint64_t>(result.bytes_saved)};
}

Json StatusReport::Named(TaskId task, const std::string& process, const char* state) const {
  return {{"role", task.role == Role::kPs ? "ps" : "worker"},
          {"index", task.index},
          {"address", KnownAddress(config_.cluster, task)},
          {"process", OrNull(process)},
          {"state", state}};
}

void StatusReport::AddReplica(int ps, const Now& now, Json* task) {
  if (now.replicas.empty()) return;
  const ReplicaFigures& replica = now.replicas[static_cast<size_t>(ps)];
  (*task)["replica"] = Json{{"on", replica.on},
                            {"counts", replica.counts},
                            {"epoch", replica.epoch},
                            {"behind", CountIn(replica.behind)}};
}

Json StatusReport::OfTask(const Member& member, const Now& now) const {
  const Pace& pace = PaceOf(member.task);
  Json task = Named(member.task, member.process, StateOf(member, now, history_.begun));
  const double heard_s = 1e-3 * static_cast<double>(member.silent.count());
  task["activity"] = member.here() ? OrNull(member.activity) : Json(nullptr);
  task["heard_s"] = member.here() ? Json(heard_s) : Json(nullptr);
  task["memory_bytes"] = pace.memory_bytes > 0 ? Json(pace.memory_bytes) : Json(nullptr);
  AddTraffic(TrafficOf(member), &task);
  if (!member.is_worker()) return AddReplica(member.task.index, now, &task), task;
  const bool has_loss = !member.result.losses.empty();
  // Of a worker that is gone ps 0 knows how many gradients it has taken.
  const int64_t steps = std::max(pace.window.latest()[0], member.here() ? 0 : member.taken);
  task["local_steps"] = member.done ? member.result.local_steps : steps;
  task["steps_per_s"] = OrNull(pace.window.PerSecond(0));
  task["examples"] = member.result.examples;
  task["leases"] = history_.steps_given_again ? Json(member.result.leases) : Json(nullptr);
  task["loss"] = OrNull(has_loss ? std::make_optional(member.result.losses.Mean()) : std::nullopt);
  task["time"] = SharesOf(pace.window);
  const auto gradients = static_cast<double>(pace.window.Of(kStalenessCount));
  const auto missed = static_cast<double>(pace.window.Of(kStalenessSum));
  task["staleness"] = gradients > 0 ? Json(missed / gradients) : Json(nullptr);
  return task;
}

std::string StatusReport::ToJson(const Now& now) const {
  const std::optional<double> steps_per_s = run_.PerSecond(0);
  std::optional<double> left_s;
  if (now.steps && steps_per_s && *steps_per_s > 0) {
    left_s = static_cast<double>(std::max<int64_t>(*now.steps - now.global_step, 0)) / *steps_per_s;
  }
  double losses = 0;
  int64_t with_loss = 0;
  Json tasks = Json::array();
  constexpr TaskId kSelf{Role::kPs, 0};
  const char* const at_end = now.done ? "done" : IsFailed(kSelf, now) ? "failed" : "ended";
  Json own = Named(kSelf, ProcessText(), now.ended ? at_end : "here");
  AddReplica(0, now, &own);
  own["activity"] = "serve";
  own["heard_s"] = 0.0;
  own["memory_bytes"] = ReadOwnMemory();
  AddTraffic(now.traffic, &own);
  tasks.push_back(std::move(own));
  for (const Member& member : members_.all()) {
    if (!member.result.losses.empty()) {
      losses += member.result.losses.Mean();
      ++with_loss;
    }
    tasks.push_back(OfTask(member, now));
  }
  Json document = {
      {"time", WallText(WallNanos())},
      {"version", kVersion},
      {"run_id", fmt::format("{:016x}", history_.run.id)},
      {"restarts_from_checkpoint", history_.run.epoch},
      {"phase", now.phase},
      {"waiting", OrNull(now.waiting)},
      {"global_step", now.global_step},
      {"steps", OrNull(now.steps)},
      {"steps_per_s", OrNull(steps_per_s)},
      {"examples_per_s", OrNull(run_.PerSecond(1))},
      {"left_s", OrNull(left_s)},
      {"elapsed_s", 1e-9 * static_cast<double>(WallNanos() - begun_nanos_)},
      {"loss",
       OrNull(with_loss > 0 ? std::make_optional(losses / static_cast<double>(with_loss)) : std::nullopt)},
      {"bytes_sent", nullptr},
      {"bytes_received", nullptr},
      {"bytes_saved", nullptr},
      {"steps_given_again", OrNull(history_.steps_given_again)},
      {"saving", now.saving},
      {"checkpoint", nullptr},
      {"evaluation", nullptr},
      {"warnings", Json::array()},
      {"tasks", std::move(tasks)},
  };
  AddTraffic(now.traffic, &document);
  for (const Member& member : members_.all()) AddTraffic(TrafficOf(member), &document);
  if (!now.warning.empty()) document["warnings"].push_back(Printable(now.warning));
  if (!history_.checkpoint.empty()) {
    const int64_t written =
        history_.checkpoint == checkpoint_ ? checkpoint_nanos_ : WrittenAt(history_.checkpoint);
    document["checkpoint"] =
        Json{{"path", history_.checkpoint},
             {"step", history_.checkpoint_step},
             {"age_s", 1e-9 * static_cast<double>(std::max<int64_t>(WallNanos() - written, 0))}};
  }
  if (history_.patience && std::isfinite(history_.patience->best())) {
    document["evaluation"] =
        Json{{"set", SetName(config_.eval.on)},
             {std::string("best_") + MetricName(config_.eval.metric), history_.patience->best()},
             {"best_step", history_.patience->best_step()}};
  }
  std::string text = document.dump();
  if (text.size() <= kMaxBytes) return text;
  document["tasks"] = nullptr;
  return document.dump();
}

}  // namespace dtrain
