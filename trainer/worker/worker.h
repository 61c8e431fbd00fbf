// Worker: one worker of a run: it reads batches, computes gradients and exchanges them for new weights. ps 0
// may ask any worker that has the rows to evaluate.
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
#include "trainer/config/cluster_config.h"
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
  // `store`: the device of this process on which the parameters stay; null: they travel. `stop`: read by the
  // heartbeats, which tell ps 0, and between two steps by a worker that leaves alone; null: nobody asks.
  // `more_hooks`: called after the hooks of the config.
  Worker(const Config& config, TaskId self, const Layout& layout, const DeviceChoice& devices,
         DeviceStore* store, net::Channel& channel, net::Transport& transport, const StopRequest* stop,
         ExitHooks& exit_hooks, Logger& log, HookList more_hooks = {});

  // Makes worker 0 serve batches to the other workers through `channel`, which is bound (data.split: feed).
  void FeedOthersThrough(std::unique_ptr<net::Channel> channel) {
    data_.FeedOthersThrough(std::move(channel));
  }
  // WorkerData::UseColumns(). Call it before Run().
  void UseColumns(InputForm form) { data_.UseColumns(std::move(form)); }
  // WorkerData::ReadOnThread(). Call it before Run().
  void ReadOnThread() { data_.ReadOnThread(); }
  // WorkerData::Share(). Call it before Run().
  void ShareData(SharedData* shared) { data_.Share(shared); }
  // Called when ps 0 is given up.
  void set_on_lost(std::function<void(TaskId, const std::string& why)> on_lost) {
    peers_.set_on_lost(std::move(on_lost));
  }
  // Called by another thread when the run has failed or was stopped; may be empty. Set it before Run().
  void set_on_abort(std::function<void(ExitCode, const std::string& why)> on_abort) {
    peers_.heartbeat().set_on_abort(std::move(on_abort));
  }
  // Runs from Hello to the end of the run, through all rollbacks. Throws Failure; Abort() then tells the
  // others.
  RunSummary Run();
  void Abort(int exit_code, const std::string& text, const RunSummary* summary = nullptr) {
    if (summary_) summary_->End(static_cast<ExitCode>(exit_code));
    peers_.Abort(exit_code, text, summary);
  }
  // What the run has reached, as far as this worker knows; empty: the run has not begun.
  RunSummary Reached() const;

 private:
  void Load();
  Exchanges::Entry Start();
  RunSummary TakePart(const Exchanges::Entry& entry);
  [[noreturn]] void EndByFault(const UserError& fault);
  void Enter(const Exchanges::Entry& entry);
  Exchanges::Entry WaitForStart();
  flatbuffers::Offset<wire::Ready> MakeReady(flatbuffers::FlatBufferBuilder& builder);
  void Train();
  void Step(const Batch& batch, StepView& view);
  bool BeforeStep(const Batch& batch, StepView& view);
  bool SendsEarly() const;
  void StageNext();
  void TakeResult(StepView& view);
  void Skip(StepView& view);
  void CollectWeights();
  void AfterStep(StepView& view);
  void TellTraffic();
  void Ask(const HookRequests& requests);
  bool HaveStep();
  void TakeLease();
  bool AskForStep();
  void AskForRows();
  void AskAhead(int64_t asked);
  uint64_t AskForSnapshot(int64_t local_step, int64_t* global_step);
  std::optional<Evaluation> Evaluate(EvalOn set, Figures* figures = nullptr, uint64_t snapshot = 0);
  EvaluationFigures EvaluateFinal(EvalOn set);
  std::optional<Evaluation> EvaluateRows(BatchSource& source, Figures* figures, uint64_t snapshot);
  void EvaluateAfter(int64_t local_step);
  bool TellEvaluation(int64_t local_step, int64_t global_step, const EvaluationFigures& validation,
                      const EvaluationFigures& test, uint64_t snapshot = 0);
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
  Conversations& peers_;  // the client's
  Exchanges& exchanges_;  // the client's
  WorkerData data_;
  WorkerModel model_;
  std::unique_ptr<WorkerSummary> summary_;  // null without summary.dir
  HookList more_hooks_;
  HookList hooks_;
  StepTimes times_;
  KnownCheckpoint newest_;         // the newest checkpoint of the run that this worker knows
  bool ended_going_back_ = false;  // ps 0 has ended the run before it went on, and may have skipped that one
  bool ended_early_ = false;       // a hook or an evaluation of this worker has ended the run
  std::optional<Evaluation> own_evaluation_;
  bool came_too_late_ = false;  // the run was over when this worker was ready
  int64_t local_step_ = 0;
  int64_t skipped_ = 0;     // gradients that were not finite and left out
  int64_t asked_ = 0;       // of a table: the rows of the batches before this local step were asked for
  net::ChannelStats told_;  // the bytes that the last Done reported
  int64_t first_step_nanos_ = 0;
  int64_t last_step_nanos_ = 0;
  int64_t evaluated_step_ = 0;        // the latest local step whose evaluation ps 0 has
  std::optional<double> first_loss_;  // of this incarnation's first step with rows
  std::optional<float> untold_loss_;  // of the latest step, until ps 0 has it
  bool from_initial_values_ = false;  // the first step was from initial values
};

}  // namespace dtrain
