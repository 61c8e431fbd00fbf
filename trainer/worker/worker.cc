#include "trainer/worker/worker.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/error.h"
#include "base/plural.h"
#include "trainer/data/order.h"
#include "trainer/model/finite.h"
#include "trainer/worker/evaluate.h"

namespace dtrain {
namespace {

// `--result` shows the weights of models up to this many values.
constexpr int64_t kSmallModel = 64;

Failure Diverged(const std::string& what) {
  return Failure(ExitCode::kDiverged, what +
                                          ": the run has diverged. Try a smaller "
                                          "train.optimizer.learning_rate, or check the data.");
}

net::ChannelStats Sum(const net::ChannelStats& a, const net::ChannelStats& b) {
  return {a.bytes_sent + b.bytes_sent, a.bytes_received + b.bytes_received,
          a.frames_dropped + b.frames_dropped};
}

const auto kWaitEnd = [](auto& builder) { return wire::CreateWaitEnd(builder); };

}  // namespace

Worker::Worker(const Config& config, TaskId self, const Layout& layout, net::Channel& channel,
               net::Transport& transport, ExitHooks& hooks, Logger& log)
    : config_(config),
      self_(self),
      layout_(layout),
      channel_(channel),
      transport_(transport),
      hooks_(hooks),
      log_(log),
      client_(config, self, layout, channel, transport, activity_, log),
      parameters_(static_cast<size_t>(layout.size)),
      progress_(config.hooks, log) {
  for (int64_t i = 0; i < config.train.in_flight + 1; ++i) {
    buffers_.emplace_back(static_cast<size_t>(layout.size) * sizeof(float));
  }
}

RunSummary Worker::Run() {
  client_.Join();
  while (!Start()) client_.Rejoin();
  Train();
  if (config_.eval.at_end && config_.eval.by == EvalBy::kAll) own_evaluation_ = Evaluate();
  SayDone();
  if (chief()) ReportAsChief();
  return WaitForEnd();
}

// After every joining: what was loaded stays, and batches are dealt within one run.
void Worker::Load() {
  activity_.what = "load";
  if (source_ == nullptr) OpenSource();
  if (feeder_) feeder_->set_run_id(client_.run_id());
  if (fed_ != nullptr) fed_->Join(client_.run_id());
  if (model_ != nullptr) return;
  model_ = MakeModel(config_.model, layout_, MostRows());
  summary_ = WorkerSummary::Open(config_, self_.index, layout_, hooks_, log_);
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
  data_ = LoadData(config_);
  if (!data_.class_names.empty()) log_.Info("{}", ClassNamesText(data_.class_names));
  source_ =
      MakeBatchSource(config_, data_.train, self_.index, static_cast<int>(config_.cluster.worker.size()));
  if (feed_channel_) {
    feeder_ = std::make_unique<Feeder>(config_, data_.train, std::move(feed_channel_), log_);
    log_.Info("feeds the other workers their batches");
  }
}

// Of the largest batch, of training or of an evaluation.
int64_t Worker::MostRows() const {
  if (fed_ != nullptr) return fed_->most_rows();
  const int64_t test_rows = data_.test == nullptr ? 0 : data_.test->rows().value_or(0);
  return MaxBatchRows(config_, data_.train->rows(), test_rows);
}

bool Worker::Start() {
  try {
    Load();
    activity_.what = "wait";
    client_.Enter(parameters_.data(), WaitForStart());
  } catch (const PsClient::Restarted&) {
    log_.Warning("a ps was restarted before the start; joining again");
    return false;
  }
  client_.Started();
  return true;
}

// Returns the workers that start together with this one.
std::vector<uint32_t> Worker::WaitForStart() {
  const wire::Envelope& answer =
      client_.Call(0, true, "ready", [](auto& builder) { return wire::CreateReady(builder); });
  const wire::Start* start = answer.body_as_Start();
  if (start == nullptr) throw Failure(ExitCode::kInternal, "ps 0 answered Ready with something else");
  const bool initialise = start->initialise();
  std::vector<uint32_t> together;
  if (start->workers() != nullptr) together.assign(start->workers()->begin(), start->workers()->end());
  client_.AddSteps(start->steps());
  local_step_ = static_cast<int64_t>(start->local_step());
  if (local_step_ > 0) {
    log_.Info("goes on at local step {}", local_step_);
    source_->Seek(local_step_);
  }
  if (initialise) {
    for (size_t ps = 0; ps < client_.ps_count(); ++ps) {
      client_.Call(ps, false, "initialise", [](auto& builder) { return wire::CreateInitialise(builder); });
    }
    client_.Call(0, false, "initialised", [](auto& builder) { return wire::CreateInitialised(builder); });
    log_.Info("initialised {} variables, {} values", layout_.variables.size(), layout_.size);
  }
  return together;
}

void Worker::Train() {
  activity_.what = "step";
  first_step_nanos_ = WallNanos();
  BeginReports();
  Batch batch;
  while (HaveStep() && source_->Next(&batch)) Step(batch);
  while (client_.open() > 0) client_.Collect(parameters_.data());
  last_step_nanos_ = WallNanos();
  log_.SetLive("");
  if (const int64_t late = client_.too_late()) {
    log_.Info("{} came too late for {} and {} dropped", Plural(late, "gradient"),
              late == 1 ? "its round" : "their rounds", late == 1 ? "was" : "were");
  }
  if (summary_) summary_->Flush();
}

void Worker::BeginReports() {
  progress_.Begin();
  if (summary_) summary_->Begin(client_.global_step());
  if (!chief() || !log_.live()) return;
  const int workers = static_cast<int>(config_.cluster.worker.size());
  std::optional<int64_t> rows = data_.train->rows();
  if (rows) *rows -= config_.data.validation;
  live_.emplace(workers, TotalSteps(config_, rows, workers), client_.global_step(), Clock::now());
}

// Whether ps 0 has granted a step; asks and waits where it has not. False: the run's last step is applied.
bool Worker::HaveStep() {
  while (client_.steps() == 0) {
    if (client_.open() > 0) {
      client_.Collect(parameters_.data());
      continue;
    }
    const wire::Grant* grant =
        client_.Call(0, true, "step", [](auto& builder) { return wire::CreateNeedStep(builder); })
            .body_as_Grant();
    if (grant == nullptr) throw Failure(ExitCode::kInternal, "ps 0 answered NeedStep with something else");
    if (grant->over()) return false;
    client_.AddSteps(grant->steps());
  }
  return true;
}

void Worker::Step(const Batch& batch) {
  const net::LentBuffer& gradient = FreeBuffer();
  const bool summarised = summary_ && summary_->Due(local_step_ + 1);
  int64_t correct = 0;
  const float loss =
      model_->Gradient(parameters_.data(), batch, gradient.floats(), summarised ? &correct : nullptr);
  if (!std::isfinite(loss)) {
    throw Diverged(
        fmt::format("the loss is {} at local step {}", std::isnan(loss) ? "nan" : "inf", local_step_ + 1));
  }
  const int64_t rows = batch.rows;
  client_.Push(gradient, static_cast<uint32_t>(rows));
  source_->ReadAhead();  // while the gradient is under way
  if (client_.open() == config_.train.in_flight) {
    client_.Collect(parameters_.data());
  } else {
    client_.CollectArrived(parameters_.data());
  }
  while (client_.torn()) client_.Enter(parameters_.data(), {});
  recent_losses_[static_cast<size_t>(steps_here_++ % static_cast<int64_t>(recent_losses_.size()))] = loss;
  ++local_step_;
  activity_.progress.store(static_cast<uint64_t>(local_step_), std::memory_order_relaxed);
  if (summary_) summary_->CountExamples(rows);
  if (summarised && summary_->Moved(client_.global_step())) {
    summary_->OnStep({client_.global_step(), loss, correct, rows, client_.staleness().TakeMean()});
  }
  ReportStep(rows, loss);
}

void Worker::ReportStep(int64_t rows, float loss) {
  progress_.OnStep(*source_, client_.global_step(), local_step_, loss, rows);
  if (!live_ || !live_->OnStep(loss, rows)) return;
  log_.SetLive(LiveText(live_->Figures(client_.global_step(), client_.workers_here(), Clock::now())));
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
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

std::optional<Evaluation> Worker::Evaluate() {
  const std::unique_ptr<BatchSource> source = EvaluationSource(config_, data_);
  if (source == nullptr) return std::nullopt;
  activity_.what = "eval";
  client_.Pull(parameters_.data());
  return EvaluateAll(*model_, parameters_.data(), *source);
}

void Worker::SayDone() {
  activity_.what = "wait";
  const double accuracy = own_evaluation_ && own_evaluation_->classifies
                              ? own_evaluation_->accuracy()
                              : std::numeric_limits<double>::quiet_NaN();
  // ps 0 last: when it knows, all know.
  for (size_t ps = client_.ps_count(); ps-- > 0;) {
    told_stats_ = channel_.stats();
    if (fed_ != nullptr) told_stats_ = Sum(told_stats_, fed_->stats());
    client_.Call(ps, false, "done", [&](auto& builder) {
      return wire::CreateDone(builder, static_cast<uint64_t>(local_step_), RecentLoss(), first_step_nanos_,
                              last_step_nanos_, told_stats_.bytes_sent, told_stats_.bytes_received, accuracy);
    });
  }
}

void Worker::ReportAsChief() {
  RunSummary report;
  client_.Call(0, true, "the others' end", [](auto& builder) { return wire::CreateWaitAllDone(builder); });
  client_.Pull(parameters_.data());  // and with it the last global step
  // The last steps' overflow is in no loss any more.
  if (const std::optional<std::string> wrong = FirstNonFinite(layout_, parameters_.data())) {
    throw Diverged(fmt::format("at the end of the run {}", *wrong));
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

RunSummary Worker::WaitForEnd() {
  const wire::End* end = client_.Call(0, true, "the end", kWaitEnd).body_as_End();
  RunSummary summary;
  if (end == nullptr || !FromWireJson(end->json()->str(), &summary)) {
    throw Failure(ExitCode::kInternal, "ps 0 ended the run with a summary that cannot be read");
  }
  client_.SayBye();
  return summary;
}

}  // namespace dtrain
