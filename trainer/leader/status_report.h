// StatusReport: what the run does now, as one JSON document for people who ask (dtrain status;
// docs/watching.md). It keeps what a pace needs: some samples of the last seconds, of the run and of each
// worker. Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "net/codec.h"
#include "trainer/config/cluster_config.h"
#include "trainer/leader/replicas.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"

namespace dtrain {

// PaceWindow: how much was counted in about the last ten seconds.
template <size_t kCounts>
class PaceWindow {
 public:
  using Counts = std::array<int64_t, kCounts>;

  // Counts that are lower than before are those of another process: the window begins anew.
  void Add(TimePoint now, const Counts& counts) {
    if (!samples_.empty() && counts[0] < samples_.back().counts[0]) samples_.clear();
    latest_ = {now, counts};
    if (!samples_.empty() && now - samples_.back().at < kApart) return;
    samples_.push_back(latest_);
    if (samples_.size() > kSamples) samples_.pop_front();
  }
  double seconds() const { return samples_.empty() ? 0 : SecondsBetween(samples_.front().at, latest_.at); }
  int64_t Of(size_t count) const {
    return samples_.empty() ? 0 : latest_.counts[count] - samples_.front().counts[count];
  }
  // Unset: nothing is known yet.
  std::optional<double> PerSecond(size_t count) const {
    return seconds() > 0 ? std::make_optional(static_cast<double>(Of(count)) / seconds()) : std::nullopt;
  }
  const Counts& latest() const { return latest_.counts; }

 private:
  static constexpr std::chrono::seconds kApart{2};
  static constexpr size_t kSamples = 6;
  struct Sample {
    TimePoint at;
    Counts counts{};
  };
  std::deque<Sample> samples_;
  Sample latest_;
};

class StatusReport {
 public:
  StatusReport(const Config& config, const TaskTable& members, const RunHistory& history);

  // What the leader knows besides.
  struct Now {
    const char* phase = "";  // joining, initialising, training, stopping, ending or ended
    std::string waiting;     // for whom; empty: for nobody
    int64_t global_step = 0;
    std::optional<int64_t> steps;  // of the whole run; unset: not known
    bool saving = false;           // a checkpoint is being written
    bool ended = false;            // and how, in the fields below
    bool done = false;
    std::optional<TaskId> failed = {};          // the task that is to blame; unset: none
    bool failed_by_loss = false;                // since it was lost
    std::string warning = {};                   // what must be mended while the run goes on; empty: nothing
    Traffic traffic = {};                       // of ps 0
    std::vector<ReplicaFigures> replicas = {};  // by ps; empty: there are none
  };

  // Takes a sample of the run when one is due. Cheap enough for every tick.
  void Tick(TimePoint now, int64_t global_step);
  void OnHeartbeat(const Member& member, const wire::Heartbeat& beat, TimePoint now);
  // The run starts, or goes on, at a step: what came before is not of its pace.
  void Begin() { run_ = {}; }
  // The member's process is gone. What it has done stays, if it was done.
  void Forget(const Member& member) {
    if (!member.done) PaceOf(member.task) = {};
  }

  std::string ToJson(const Now& now) const;

 private:
  // A task's, by its heartbeats: local steps, the microseconds in each part of them, then the staleness of
  // its gradients, all together, and their number.
  using TaskWindow = PaceWindow<8>;
  struct Pace {
    TaskWindow window;
    int64_t memory_bytes = 0;
    Traffic traffic;
  };
  Pace& PaceOf(TaskId task);
  const Pace& PaceOf(TaskId task) const { return const_cast<StatusReport*>(this)->PaceOf(task); }
  int64_t Examples() const;
  Traffic TrafficOf(const Member& member) const;
  Json Named(TaskId task, const std::string& process, const char* state) const;
  static void AddReplica(int ps, const Now& now, Json* task);
  Json OfTask(const Member& member, const Now& now) const;

  const Config& config_;
  const TaskTable& members_;
  const RunHistory& history_;
  const int64_t begun_nanos_;  // wall clock
  TimePoint next_sample_;
  PaceWindow<2> run_;  // global steps, examples
  std::vector<Pace> ps_, workers_;
  std::string checkpoint_;        // history_.checkpoint as Tick() saw it
  int64_t checkpoint_nanos_ = 0;  // wall clock of its directory
};

}  // namespace dtrain
