#include "trainer/worker/worker.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/plural.h"
#include "trainer/hooks/make_hooks.h"
#include "trainer/model/finite.h"
#include "trainer/model/tower_model.h"
#include "trainer/optim/clip_norm.h"
#include "trainer/peer/this_host.h"
#include "trainer/worker/evaluate.h"
#include "trainer/worker/model_start.h"

namespace dtrain {
namespace {

// `--result` shows the weights of models up to this many values.
constexpr int64_t kSmallModel = 64;

TimeSpread Spread(const LogHistogram& nanos) {
  const HistogramFigures figures = nanos.Figures();
  return {figures.sum * 1e-9, figures.p50 * 1e-6, figures.p95 * 1e-6};
}

net::ChannelStats Sum(const net::ChannelStats& a, const net::ChannelStats& b) {
  return {a.bytes_sent + b.bytes_sent, a.bytes_received + b.bytes_received,
          a.frames_dropped + b.frames_dropped};
}

const auto kWaitEnd = [](auto& builder) { return wire::CreateWaitEnd(builder); };

}  // namespace

Worker::Worker(const Config& config, TaskId self, const Layout& layout, net::Channel& channel,
               net::Transport& transport, ExitHooks& exit_hooks, Logger& log, HookList more_hooks)
    : config_(config),
      self_(self),
      layout_(layout),
      channel_(channel),
      transport_(transport),
      exit_hooks_(exit_hooks),
      log_(log),
      client_(config, self, layout, channel, transport, activity_, log),
      parameters_(static_cast<size_t>(layout.size)),
      more_hooks_(std::move(more_hooks)) {
  activity_.leaves = config.failure.on_sigterm == OnSigterm::kLeave && self.index != 0;
  for (int64_t i = 0; i < config.train.in_flight + 1; ++i) {
    buffers_.emplace_back(static_cast<size_t>(layout.size) * sizeof(float));
  }
  client_.set_on_quiet([this] { LookAtRole(); });
}

RunSummary Worker::Run() {
  std::optional<PsClient::Restarted> restarted;
  while (true) {
    try {
      restarted ? client_.Rejoin() : client_.Join();
      return RunOnce();
    } catch (const PsClient::Restarted& why) {
      restarted = why;
      if (client_.term() != 0) last_chief_ = {client_.chief(), client_.term()};
    }
    log_.Warning("{}; joining again", restarted->why);
  }
}

RunSummary Worker::RunOnce() {
  Start();
  if (came_too_late_) return WaitForEnd();
  Train();
  if (activity_.leaving()) Leave();
  if (config_.eval.at_end && config_.eval.by == EvalBy::kAll) own_evaluation_ = Evaluate();
  SayDone();
  LookAtRole();
  if (chief()) ReportAsChief();
  return WaitForEnd();
}

// After every joining: what was loaded stays, and batches are dealt within one run.
void Worker::Load() {
  activity_.what = "load";
  if (source_ == nullptr) OpenSource();
  if (feeder_) feeder_->set_run_id(client_.run().id);
  if (fed_ != nullptr) fed_->Join(client_.run().id);
  if (model_ != nullptr) return;
  model_ = MakeTowers(config_.model, layout_, MostRows(), config_.device.towers());
  summary_ = WorkerSummary::Open(config_, self_.index, layout_, exit_hooks_, log_);
  hooks_ = MakeHooks({config_, self_, layout_, data_, *model_, client_.staleness(), summary_.get(), activity_,
                      log_, [this] { client_.CheckAllAlive(); }});
  std::move(more_hooks_.begin(), more_hooks_.end(), std::back_inserter(hooks_));
}

void Worker::OpenSource() {
  if (IsFed(config_, self_.index)) {
    auto source = std::make_unique<FeedSource>(config_, self_.index, transport_, activity_,
                                               [this] { client_.Attend(); });
    fed_ = source.get();
    source_ = std::move(source);
    log_.Info("all batches come from {}", TaskNameAndAddress(config_.cluster, {Role::kWorker, 0}));
    return;
  }
  if (self_.index == 0) OpenCheckpoints();  // before the start, so that what is wrong with it shows there
  data_ = LoadData(config_);
  if (!data_.class_names.empty()) log_.Info("{}", ClassNamesText(data_.class_names));
  source_ =
      MakeBatchSource(config_, data_.train, self_.index, static_cast<int>(config_.cluster.worker.size()));
  if (feed_channel_) {
    feeder_ =
        std::make_unique<Feeder>(config_, data_.train, std::move(feed_channel_), client_.run().id, log_);
    log_.Info("feeds the other workers their batches");
  }
}

// Of the largest batch of one device, of training or of an evaluation.
int64_t Worker::MostRows() const {
  if (fed_ != nullptr) return std::min(fed_->most_rows(), config_.train.batch_size);
  const int64_t test_rows = data_.test == nullptr ? 0 : data_.test->rows().value_or(0);
  return MaxBatchRows(config_, data_.train->rows(), test_rows);
}

void Worker::Start() {
  Load();
  activity_.what = "wait";
  const PsClient::Entry entry = WaitForStart();
  if (!came_too_late_) client_.Enter(parameters_.data(), entry);
  client_.Started();
  ended_early_ = false;
}

PsClient::Entry Worker::WaitForStart() {
  const wire::Envelope& answer = client_.Call(0, true, "ready", [this](auto& builder) {
    const bool returning = client_.returning();
    const double quiet_s = returning ? times_.SecondsSinceMark() : 0;
    return wire::CreateReady(builder, returning, static_cast<uint64_t>(client_.global_step()),
                             static_cast<uint64_t>(quiet_s * 1000), static_cast<uint32_t>(last_chief_.index),
                             returning ? last_chief_.term : 0);
  });
  const wire::Start* start = answer.body_as_Start();
  if (start == nullptr) throw Failure(ExitCode::kInternal, "ps 0 answered Ready with something else");
  if (start->initialise()) {
    TakeRole(start->term());
    start = &FillModel(start->again());
  }
  TakeRole(start->term());
  seen_term_ = 0;  // a later term may have been seen before this, and is to be looked at again
  PsClient::Entry entry{{}, start->clock(), start->resume(), start->version()};
  if (start->workers() != nullptr) entry.together.assign(start->workers()->begin(), start->workers()->end());
  came_too_late_ = start->over();
  if (came_too_late_) {
    log_.Info("the run is over, its last step is applied: nothing is left for this worker");
    return entry;
  }
  client_.AddSteps(start->steps());
  TakeUpData(start->dealt());
  local_step_ = static_cast<int64_t>(start->local_step());
  if (local_step_ > 0) log_.Info("goes on at local step {}", local_step_);
  if (local_step_ > 0 || client_.returning()) source_->Seek(local_step_);
  return entry;
}

// Where the data goes on: ps 0 says it as JSON, nothing where it was never dealt anew.
void Worker::TakeUpData(const flatbuffers::String* dealt) {
  Dealt taken;
  if (dealt != nullptr && !FromJson(dealt->str(), &taken)) {
    throw Failure(ExitCode::kInternal, "ps 0 said something unreadable of the data that was taken before");
  }
  if (taken != source_->dealt()) source_->Deal(taken);
}

// The chief's: answered when the run begins, with checkpoint.dir only after the first checkpoint.
const wire::Start& Worker::FillModel(bool again) {
  if (!again && checkpoints_ != nullptr) {
    checkpoints_->Claim(fmt::format("{}, {}", TaskNameAndAddress(config_.cluster, self_), ProcessText()));
  }
  ModelStart model(config_, layout_, client_, checkpoints_.get(), log_);
  const StartedFrom from = model.Fill(again, data_.train->rows());
  if (feeder_) feeder_->Deal(from.positions.dealt);
  // Of another training.
  if (config_.eval.keep_best && from.path.empty() && checkpoints_ != nullptr) checkpoints_->ForgetBest();
  const wire::Start* start =
      client_
          .Call(0, true, "the first checkpoint",
                [&](auto& builder) {
                  const auto path = from.path.empty() ? 0 : builder.CreateString(from.path);
                  return wire::CreateInitialised(builder, path, static_cast<uint64_t>(from.step),
                                                 builder.CreateString(ToJson(from.positions)));
                })
          .body_as_Start();
  if (start == nullptr) throw Failure(ExitCode::kInternal, "ps 0 answered Initialised with something else");
  return *start;
}

void Worker::OpenCheckpoints() {
  const bool writes = config_.checkpoint.writer == CheckpointWriter::kChief;
  if (checkpoints_ != nullptr || !writes || config_.checkpoint.dir.empty()) return;
  checkpoints_ = std::make_unique<CheckpointDirectory>(config_.checkpoint.dir);
  checkpoints_->Prepare();
}

// ps 0 says of which term this worker is the chief; 0: it is not.
void Worker::TakeRole(uint32_t term) {
  if (term > 1 && term != term_) log_.Info("is the chief from now on (term {})", term);
  term_ = term;
  const bool has_saver = saver_ != nullptr && saver_->run() == client_.run() && saver_->term() == term;
  if (has_saver && term > 0) return;
  saver_.reset();
  if (term == 0) return;
  OpenCheckpoints();
  if (checkpoints_ == nullptr) return;
  saver_ = std::make_unique<Saver>(config_, layout_, *checkpoints_, transport_, client_.run(), term, log_);
}

// Whether the chief was lost meanwhile, and this worker is it now.
void Worker::LookAtRole() {
  const uint32_t term = client_.term();
  if (term == seen_term_) return;
  seen_term_ = term;
  if (term > term_ && client_.chief() == self_.index) TakeRole(term);
}

void Worker::Train() {
  activity_.what = "step";
  if (first_step_nanos_ == 0) first_step_nanos_ = WallNanos();
  StepView view{self_, layout_, *source_, times_, parameters_.data()};
  view.chief = chief();
  view.local_step = local_step_;
  view.global_step = client_.global_step();
  for (const auto& hook : hooks_) hook->Begin(view);
  TakeSteps(view);
  last_step_nanos_ = WallNanos();
  view.local_step = local_step_;
  view.global_step = client_.global_step();
  for (const auto& hook : hooks_) hook->End(view);
  if (const int64_t late = client_.too_late()) {
    log_.Info("{} came too late for {} and {} dropped", Plural(late, "gradient"),
              late == 1 ? "its round" : "their rounds", late == 1 ? "was" : "were");
  }
}

void Worker::TakeSteps(StepView& view) {
  client_.TakeHeld();  // of the first weights: start-up
  times_.Begin(Clock::now());
  Batch batch;
  while (!ended_early_ && !activity_.leaving() && HaveStep() && source_->Next(&batch)) Step(batch, view);
  while (client_.open() > 0) client_.Collect(parameters_.data());
}

// Whether ps 0 has granted a step; asks and waits where it has not. False: the run's last step is applied.
bool Worker::HaveStep() {
  while (client_.steps() == 0) {
    if (client_.open() > 0) {
      client_.Collect(parameters_.data());
      times_.MarkAnswer(Clock::now(), client_.TakeHeld());
      continue;
    }
    const wire::Grant* grant =
        client_.Call(0, true, "step", [](auto& builder) { return wire::CreateNeedStep(builder); })
            .body_as_Grant();
    if (grant == nullptr) throw Failure(ExitCode::kInternal, "ps 0 answered NeedStep with something else");
    if (grant->over()) return false;
    client_.AddSteps(grant->steps());
    times_.Mark(StepPart::kWait, Clock::now());  // for the others' steps
  }
  return true;
}

// The clock is read four times in a step, once between two parts that are told apart: a data source, a
// processor, a worker or a network that is slow shows as that. A fifth time where there are hooks: they may
// take any time.
void Worker::Step(const Batch& batch, StepView& view) {
  times_.MarkBatch(Clock::now(), source_->TakeWaitedNanos());
  ComputeAndPush(batch, view);
  times_.Mark(StepPart::kCompute, Clock::now());
  source_->ReadAhead();  // while the gradient is under way
  times_.Mark(StepPart::kData, Clock::now());
  CollectWeights();
  times_.MarkAnswer(Clock::now(), client_.TakeHeld());
  AfterStep(view);
}

void Worker::ComputeAndPush(const Batch& batch, StepView& view) {
  const net::LentBuffer& gradient = FreeBuffer();
  HookRequests requests;
  view.local_step = local_step_ + 1;
  view.rows = batch.rows;
  for (const auto& hook : hooks_) hook->BeforeStep(view, &requests);
  view.loss = model_->Gradient(parameters_.data(), batch, gradient.floats(),
                               requests.count_correct ? &view.correct : nullptr);
  for (const auto& hook : hooks_) hook->OnGradient(view, gradient.floats());
  if (const auto& most = config_.train.optimizer.clip_norm; most && !NormOfRounds(config_.train)) {
    ClipToNorm(*most, {gradient.floats(), layout_.size});
  }
  client_.Push(gradient, static_cast<uint32_t>(view.rows));
}

void Worker::CollectWeights() {
  if (client_.open() == config_.train.in_flight) {
    client_.Collect(parameters_.data());
  } else {
    client_.CollectArrived(parameters_.data());
  }
  while (client_.torn()) client_.Enter(parameters_.data(), {});
}

void Worker::AfterStep(StepView& view) {
  recent_losses_[static_cast<size_t>(steps_here_++ % static_cast<int64_t>(recent_losses_.size()))] =
      view.loss;
  ++local_step_;
  if (feeder_) feeder_->CheckAlive();
  activity_.local_step.store(static_cast<uint64_t>(local_step_), std::memory_order_relaxed);
  LookAtRole();
  if (!hooks_.empty()) {
    HookRequests requests;
    view.global_step = client_.global_step();
    view.workers_here = client_.workers_here();
    view.chief = chief();
    for (const auto& hook : hooks_) hook->AfterStep(view, &requests);
    if (requests.save || requests.save_best) Save(requests.save_best);
    if (!requests.end_run.empty()) EndRunEarly(requests.end_run);
    times_.Mark(StepPart::kHooks, Clock::now());
  }
  times_.EndStep();
  activity_.own_nanos.store(static_cast<uint64_t>(times_.own_nanos()), std::memory_order_relaxed);
  activity_.steps.store(static_cast<uint64_t>(steps_here_), std::memory_order_relaxed);
}

// A request comes between exchanges, not into one.
void Worker::Save(const std::optional<EvaluationFigures>& best) {
  while (client_.open() > 0) client_.Collect(parameters_.data());
  const EvaluationFigures figures = best.value_or(EvaluationFigures());
  client_.Call(0, false, "save", [&](auto& builder) {
    return wire::CreateSave(builder, best.has_value(), figures.loss, figures.accuracy);
  });
}

// As Save().
void Worker::EndRunEarly(const std::string& reason) {
  log_.Info("the run ends early: {}", reason);
  while (client_.open() > 0) client_.Collect(parameters_.data());
  client_.Call(0, false, "stop",
               [&](auto& builder) { return wire::CreateStop(builder, builder.CreateString(reason)); });
  ended_early_ = true;
}

const net::LentBuffer& Worker::FreeBuffer() {
  for (size_t tried = 0; tried < buffers_.size(); ++tried) {
    next_buffer_ = (next_buffer_ + 1) % buffers_.size();
    if (!buffers_[next_buffer_].lent()) return buffers_[next_buffer_];
  }
  // A transport may hold on to bytes a moment after they were answered.
  buffers_.emplace_back(static_cast<size_t>(layout_.size) * sizeof(float));
  next_buffer_ = buffers_.size() - 1;
  return buffers_.back();
}

double Worker::RecentLoss() const {
  const auto count =
      static_cast<size_t>(std::min<int64_t>(steps_here_, static_cast<int64_t>(recent_losses_.size())));
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(recent_losses_[i]);
  return sum / static_cast<double>(count);  // of none: not a number
}

std::optional<Evaluation> Worker::Evaluate() {
  const std::unique_ptr<BatchSource> source = EvaluationSource(config_, data_);
  if (source == nullptr) return std::nullopt;
  activity_.what = "eval";
  client_.Pull(parameters_.data());
  return EvaluateAll(*model_, parameters_.data(), *source, [this] { client_.CheckAllAlive(); });
}

WorkerFigures Worker::Figures() {
  WorkerFigures figures;
  figures.steps = times_.Of(StepPart::kCompute).count();
  figures.data = Spread(times_.Of(StepPart::kData));
  figures.compute = Spread(times_.Of(StepPart::kCompute));
  figures.hooks = Spread(times_.Of(StepPart::kHooks));
  figures.wait = Spread(times_.Of(StepPart::kWait));
  figures.network = Spread(times_.Of(StepPart::kNetwork));
  const HistogramFigures staleness = client_.staleness().all().Figures();
  if (staleness.count > 0) {
    figures.staleness = StalenessSpread{staleness.mean, staleness.p50, staleness.p95, staleness.max};
  }
  return figures;
}

void Worker::SayDone() {
  activity_.what = "wait";
  const double accuracy = own_evaluation_ && own_evaluation_->classifies
                              ? own_evaluation_->accuracy()
                              : std::numeric_limits<double>::quiet_NaN();
  const std::string figures = FiguresToJson(Figures());
  // ps 0 last: when it knows, all know.
  for (size_t ps = client_.ps_count(); ps-- > 0;) {
    told_stats_ = channel_.stats();
    if (fed_ != nullptr) told_stats_ = Sum(told_stats_, fed_->stats());
    client_.Call(ps, false, "done", [&](auto& builder) {
      return wire::CreateDone(builder, static_cast<uint64_t>(local_step_), RecentLoss(), first_step_nanos_,
                              last_step_nanos_, told_stats_.bytes_sent, told_stats_.bytes_received, accuracy,
                              builder.CreateString(figures));
    });
  }
}

void Worker::ReportAsChief() {
  RunSummary report;
  client_.Call(0, true, "the others' end", [](auto& builder) { return wire::CreateWaitAllDone(builder); });
  client_.Pull(parameters_.data());  // and with it the last global step
  // The last steps' overflow is in no loss any more.
  if (const std::optional<std::string> wrong = FirstNonFinite(layout_, parameters_.data())) {
    if (config_.hooks.stop_on_nan) throw Diverged(fmt::format("at the end of the run {}", *wrong));
    log_.Warning("at the end of the run {}", *wrong);
  }
  if (config_.eval.at_end) {
    if (const std::optional<Evaluation> evaluation = Evaluate()) {
      report.test_loss = evaluation->loss();
      if (evaluation->classifies) report.test_accuracy = evaluation->accuracy();
      if (summary_) summary_->OnEvaluation(client_.global_step(), *evaluation);
    }
  }
  std::vector<ModelPart> parts;
  for (size_t ps = 0; ps < client_.ps_count(); ++ps) {
    const wire::ChecksumList* list =
        client_.Call(ps, false, "checksums", [](auto& builder) { return wire::CreateChecksums(builder); })
            .body_as_ChecksumList();
    if (list == nullptr) throw Failure(ExitCode::kInternal, "a ps answered Checksums with something else");
    for (const wire::Part* part : *list->parts()) {
      parts.push_back({part->name()->str(), part->first_row(), part->bytes(), part->crc()});
    }
    report.bytes_sent += static_cast<int64_t>(list->bytes_sent());
    report.bytes_received += static_cast<int64_t>(list->bytes_received());
  }
  net::ChannelStats stats = channel_.stats();
  if (feeder_) stats = Sum(stats, feeder_->stats());
  report.bytes_sent += static_cast<int64_t>(stats.bytes_sent - told_stats_.bytes_sent);
  report.bytes_received += static_cast<int64_t>(stats.bytes_received - told_stats_.bytes_received);
  report.model_crc = ModelChecksum(std::move(parts));
  if (layout_.size <= kSmallModel) {
    for (const Variable& variable : layout_.variables) {
      const float* values = parameters_.data() + variable.offset;
      report.weights[variable.name] = std::vector<float>(values, values + variable.size());
    }
  }
  client_.Call(0, false, "report", [&](auto& builder) {
    return wire::CreateReport(builder, builder.CreateString(ToWireJson(report)));
  });
}

// The others go on; what it had granted goes to them.
void Worker::Leave() {
  SayDone();
  RunSummary summary;
  summary.status = "stopped";
  summary.global_step = client_.global_step();
  throw RunStopped(ExitCode::kTerminated,
                   fmt::format("left the run by SIGTERM after {} (failure.on_sigterm: leave)",
                               Plural(local_step_, "local step")),
                   std::move(summary));
}

RunSummary Worker::WaitForEnd() {
  const wire::Envelope* answer = &client_.Call(0, true, "the end", kWaitEnd);
  while (const wire::BecomeChief* role = answer->body_as_BecomeChief()) {
    TakeRole(role->term());
    ReportAsChief();
    answer = &client_.Call(0, true, "the end", kWaitEnd);
  }
  const wire::End* end = answer->body_as_End();
  RunSummary summary;
  if (end == nullptr || !FromWireJson(end->json()->str(), &summary)) {
    throw Failure(ExitCode::kInternal, "ps 0 ended the run with a summary that cannot be read");
  }
  client_.SayBye();
  return summary;
}

}  // namespace dtrain
