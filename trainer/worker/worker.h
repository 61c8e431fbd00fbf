// Worker: one worker of a run: reads batches, computes gradients, exchanges them for new weights, evaluates.
// All workers are alike; ps 0 asks one of them, that has the rows, to evaluate.
// Thread: the caller's; heartbeats have their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/signals.h"
#include "net/channel.h"
#include "trainer/config/config.h"
#include "trainer/device/choice.h"
#include "trainer/device/device_store.h"
#include "trainer/hooks/hook.h"
#include "trainer/hooks/step_stats.h"
#include "trainer/metrics/metrics.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/result/run_summary.h"
#include "trainer/summary/summary.h"
#include "trainer/worker/exchanges.h"
#include "trainer/worker/ps_client.h"
#include "trainer/worker/worker_data.h"
#include "trainer/worker/worker_model.h"

namespace dtrain {

// Where the time of a worker's steps went.
WorkerFigures FiguresOf(const StepTimes& times, const Staleness& staleness);

class Worker {
 public:
  // `store`: where the parameters stay on a device of this process; null: they travel.
  // `stop`: looked at by the heartbeats, which tell ps 0; between two steps by a worker that leaves alone.
  // Null: nobody asks. `more_hooks`: called behind those that the config switches on.
  Worker(const Config& config, TaskId self, const Layout& layout, const DeviceChoice& devices,
         DeviceStore* store, net::Channel& channel, net::Transport& transport, const StopRequest* stop,
         ExitHooks& exit_hooks, Logger& log, HookList more_hooks = {});

  // Worker 0, with data.split: feed: it serves the others their batches through `channel`, which is bound.
  void FeedOthersThrough(std::unique_ptr<net::Channel> channel) {
    data_.FeedOthersThrough(std::move(channel));
  }
  // Called when ps 0 is given up.
  void set_on_lost(std::function<void(TaskId)> on_lost) { client_.set_on_lost(std::move(on_lost)); }
  void set_on_abort(std::function<void(ExitCode)> on_abort) { client_.set_on_abort(std::move(on_abort)); }
  // From Hello to the end of the run, over all its rollbacks. Throws Failure; Abort() then tells the others.
  RunSummary Run();
  void Abort(int exit_code, const std::string& text, const RunSummary* summary = nullptr) {
    client_.Abort(exit_code, text, summary);
  }

 private:
  void Load();
  RunSummary RunOnce();
  void Start();
  Exchanges::Entry WaitForStart();
  flatbuffers::Offset<wire::Ready> MakeReady(flatbuffers::FlatBufferBuilder& builder);
  void Train();
  void TakeSteps(StepView& view);
  void Step(const Batch& batch, StepView& view);
  void ComputeAndPush(const Batch& batch, StepView& view);
  void StageNext();
  void TakeResult(StepView& view);
  void CollectWeights();
  void AfterStep(StepView& view);
  void Save();
  void EndRunEarly(const std::string& reason);
  bool HaveStep();
  std::optional<Evaluation> Evaluate(Figures* figures = nullptr);
  void EvaluateBehind(int64_t local_step);
  bool TellEvaluation(int64_t local_step, const Evaluation& evaluation, double auc);
  void EvaluateFinalWeights();
  void SayDone();
  net::ChannelStats SinceDone() const;
  RunSummary WaitForEnd();
  [[noreturn]] void Leave();

  const Config& config_;
  const TaskId self_;
  const Layout& layout_;
  const DeviceChoice& devices_;
  ExitHooks& exit_hooks_;
  Logger& log_;
  net::Channel& channel_;
  Activity activity_;
  PsClient client_;
  Exchanges& exchanges_;  // the client's
  WorkerData data_;
  WorkerModel model_;
  std::unique_ptr<WorkerSummary> summary_;  // with summary.dir
  HookList more_hooks_;
  HookList hooks_;
  StepTimes times_;
  KnownCheckpoint newest_;    // of the run, as this worker knows it
  bool ended_early_ = false;  // by a hook, or an evaluation, of this worker
  std::optional<Evaluation> own_evaluation_;
  bool came_too_late_ = false;  // the run was over when this worker was ready
  int64_t local_step_ = 0;
  net::ChannelStats told_;  // what ps 0 knows of the bytes, by Done
  int64_t first_step_nanos_ = 0;
  int64_t last_step_nanos_ = 0;
  int64_t evaluated_step_ = 0;        // the latest local step whose evaluation ps 0 has
  RecentLoss recent_loss_;            // of the steps of this incarnation
  bool from_initial_values_ = false;  // its first step was of those
};

}  // namespace dtrain
