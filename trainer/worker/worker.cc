#include "trainer/worker/worker.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/names.h"
#include "base/signals.h"
#include "trainer/hooks/hooks.h"
#include "trainer/model/finite.h"
#include "trainer/optim/optimizer.h"
#include "trainer/peer/abort.h"
#include "trainer/peer/form_message.h"
#include "trainer/peer/lease_message.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/this_host.h"
#include "trainer/result/run_account.h"
#include "trainer/worker/evaluate.h"

namespace dtrain {
namespace {

constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

TimeSpread Spread(const LogHistogram& nanos) {
  const HistogramFigures figures = nanos.Figures();
  return {figures.sum * 1e-9, figures.p50 * 1e-6, figures.p95 * 1e-6};
}

net::ChannelStats Sum(const net::ChannelStats& a, const net::ChannelStats& b) {
  return {a.bytes_sent + b.bytes_sent, a.bytes_received + b.bytes_received,
          a.frames_dropped + b.frames_dropped};
}

// The sum of the rows' weights; unset: each weighs 1.
std::optional<double> WeightOf(const Batch& batch) {
  if (batch.weights == nullptr) return std::nullopt;
  return batch.weight;
}

const auto kWaitEnd = [](auto& builder) { return wire::CreateWaitEnd(builder); };

}  // namespace

WorkerFigures FiguresOf(const StepTimes& times, const Staleness& staleness) {
  WorkerFigures figures;
  figures.steps = times.Of(StepPart::kCompute).count();
  figures.data = Spread(times.Of(StepPart::kData));
  figures.compute = Spread(times.Of(StepPart::kCompute));
  figures.hooks = Spread(times.Of(StepPart::kHooks));
  figures.wait = Spread(times.Of(StepPart::kWait));
  figures.network = Spread(times.Of(StepPart::kNetwork));
  const HistogramFigures all = staleness.all().Figures();
  if (all.count > 0) figures.staleness = StalenessSpread{all.mean, all.p50, all.p95, all.max};
  return figures;
}

Worker::Worker(const Config& config, TaskId self, const Layout& layout, const DeviceChoice& devices,
               DeviceStore* store, net::Channel& channel, net::Transport& transport, const StopRequest* stop,
               ExitHooks& exit_hooks, Logger& log, HookList more_hooks)
    : config_(config),
      self_(self),
      layout_(layout),
      devices_(devices),
      exit_hooks_(exit_hooks),
      log_(log),
      channel_(channel),
      activity_(stop, config.failure.on_sigterm == OnSigterm::kLeave && self.index != 0),
      client_(config, self, layout, channel, transport, activity_, log),
      peers_(client_.peers()),
      exchanges_(client_.exchanges()),
      data_(
          config, self.index, layout, transport, activity_, [this] { client_.Attend(); }, log),
      model_(config, layout, devices, store),
      more_hooks_(std::move(more_hooks)) {
  exchanges_.set_parameters(model_.here());
  if (store != nullptr) exchanges_.PushAddresses();
  if (devices.on_gpu() && store == nullptr) {
    exchanges_.set_on_weights(
        [this](const float* weights, Range elements) { model_.model().Arrived(weights, elements); });
  }
}

RunSummary Worker::Run() {
  std::optional<RolledBack> rolled_back;
  while (true) {
    // The start and a round may wait for those that it feeds.
    client_.set_on_quiet([this] { data_.CheckFeeder(); });
    try {
      rolled_back ? client_.Rejoin() : client_.Join();
      const Exchanges::Entry entry = Start();
      rolled_back.reset();
      return TakePart(entry);
    } catch (const RolledBack& why) {
      rolled_back = why;
      if (KnownCheckpoint told = peers_.heartbeat().checkpoint(); !told.where.empty())
        newest_ = std::move(told);
    } catch (const RunEnded&) {
      ended_going_back_ = rolled_back.has_value();
      throw;
    }
    LogRollback(*rolled_back, "joining again", log_);
  }
}

RunSummary Worker::TakePart(const Exchanges::Entry& entry) {
  try {
    if (!came_too_late_) Enter(entry);
    peers_.Started();
    ended_early_ = false;
    evaluated_step_ = 0;
    if (!came_too_late_) {
      Train();
      if (activity_.leaving()) Leave();
      if (config_.eval.at_end && config_.eval.by == EvalBy::kAll) {
        client_.Pull();
        own_evaluation_ = Evaluate(config_.eval.on);
      }
      SayDone();
    }
    return WaitForEnd();
  } catch (const UserError& fault) {
    EndByFault(fault);
  }
}

// The user can mend what this worker has met, and start the run again: ps 0 saves it before it ends it
// everywhere. If another fault was first, it ends with that one.
void Worker::EndByFault(const UserError& fault) {
  activity_.what = "wait";
  client_.set_on_quiet(nullptr);  // a feeder that has failed tells the same again
  try {
    // In the other modes an answer waits for workers that may wait for this one.
    while (config_.train.mode == TrainMode::kAsync && exchanges_.open() > 0) client_.Collect();
    client_.Call(0, true, "a fault", [&](auto& builder) {
      return CreateAbort(builder, static_cast<int>(fault.code()), self_, fault.what(), nullptr);
    });
  } catch (const RunEnded& ended) {
    const Blame blame = BlameFor({Role::kPs, 0}, "", ended.what());
    const bool own = blame.task && blame.task->role == self_.role && blame.task->index == self_.index;
    if (!own) throw;
    throw UserError("{}", blame.error);
  } catch (const PeerLost&) {
    throw fault;  // nobody is left who would save the run
  }
  throw Failure(ExitCode::kInternal, "ps 0 answered Abort with something else");
}

// Runs after each joining. Loaded data stays; batches are dealt within one run.
void Worker::Load() {
  activity_.what = kLoading;
  data_.Join(peers_.run().id, peers_.feed_token());
  if (model_.made()) return;
  model_.Make(data_.MaxRows(), data_.loaded(), data_.source(), log_);
  if (SendsEarly()) model_.model().set_on_part([this](Range part) { exchanges_.Ready(part); });
  summary_ = WorkerSummary::Open(config_, self_.index, DeviceName(config_.device, devices_, 0), layout_,
                                 exit_hooks_, log_);
  hooks_ = MakeHooks({config_, self_, layout_, data_.loaded(), exchanges_.staleness(), summary_.get(), log_});
  std::move(more_hooks_.begin(), more_hooks_.end(), std::back_inserter(hooks_));
}

Exchanges::Entry Worker::Start() {
  Load();
  activity_.what = "wait";
  return WaitForStart();
}

// Of a table the worker asks for the rows of as many batches as exchanges may be open; those of the first are
// here when this returns.
void Worker::Enter(const Exchanges::Entry& entry) {
  KeyedSource* const keyed = data_.keyed();
  if (keyed == nullptr) return client_.Enter(entry);
  KeyedBatch* const first = keyed->Ahead(1);
  client_.Enter(entry, first);
  AskAhead(1);
  if (first == nullptr) asked_ = local_step_;
}

// Opens as many exchanges as may be open, of which `asked` were, each for the rows of one batch more.
void Worker::AskAhead(int64_t asked) {
  asked_ = local_step_ + asked;
  for (int64_t ahead = asked + 1; ahead <= config_.train.in_flight; ++ahead) {
    KeyedBatch* const batch = data_.keyed()->Ahead(ahead);
    exchanges_.Pull(std::nullopt, {nullptr, batch});
    if (batch != nullptr) ++asked_;
  }
}

flatbuffers::Offset<wire::Ready> Worker::MakeReady(flatbuffers::FlatBufferBuilder& builder) {
  const bool returning = peers_.returning();
  const double quiet_s = returning ? times_.SecondsSinceMark() : 0;
  const std::optional<DataFacts> facts = data_.Facts();
  const auto data = facts ? EncodeFacts(*facts, builder) : 0;
  const bool knows = returning && !newest_.where.empty();
  const auto checkpoint = knows ? builder.CreateString(newest_.where) : 0;
  return wire::CreateReady(builder, returning, static_cast<uint64_t>(exchanges_.global_step()),
                           static_cast<uint64_t>(quiet_s * 1000), data, checkpoint,
                           static_cast<uint64_t>(knows ? newest_.step : 0), false,
                           static_cast<uint32_t>(config_.device.towers()));
}

Exchanges::Entry Worker::WaitForStart() {
  const wire::Envelope& answer =
      client_.Call(0, true, "ready", [this](auto& builder) { return MakeReady(builder); });
  const wire::Start* start = answer.body_as_Start();
  if (start == nullptr) throw Failure(ExitCode::kInternal, "ps 0 answered Ready with something else");
  came_too_late_ = start->over();
  if (!came_too_late_ && data_.TakeUp(*start)) model_.UseData(data_.loaded(), data_.source(), log_);
  newest_.Learn(start->checkpoint(), start->checkpoint_step());
  from_initial_values_ |= start->initial();
  Exchanges::Entry entry{{}, start->clock(), start->resume(), start->version()};
  if (start->workers() != nullptr) entry.together.assign(start->workers()->begin(), start->workers()->end());
  if (came_too_late_) {
    log_.Info("the run is over, its last step is applied: nothing is left for this worker");
    return entry;
  }
  if (summary_) summary_->set_decay_steps(CountIn(start->decay_steps()));
  exchanges_.AddSteps(start->steps());
  for (const Lease& lease : DecodeLeases(start->leases())) data_.Take(lease);
  local_step_ = CountIn(start->local_step());
  if (local_step_ > 0) log_.Info("goes on at local step {}", local_step_);
  if (local_step_ > 0 || peers_.returning()) data_.source().Seek(local_step_);
  return entry;
}

void Worker::Train() {
  activity_.what = "step";
  if (first_step_nanos_ == 0) first_step_nanos_ = WallNanos();
  StepView view{self_, layout_, data_.source(), times_, model_.parameters()};
  view.local_step = local_step_;
  view.global_step = exchanges_.global_step();
  for (const auto& hook : hooks_) hook->Begin(view);
  if (const int64_t step = exchanges_.TakeEvaluation()) EvaluateAfter(step);
  exchanges_.TakeHeld();  // those of the first weights are start-up
  times_.Begin(Clock::now());
  Batch batch;
  while (!ended_early_ && !activity_.leaving() && HaveStep() && data_.source().Next(&batch)) {
    Step(batch, view);
  }
  while (exchanges_.open() > 0) client_.Collect();
  last_step_nanos_ = WallNanos();
  view.local_step = local_step_;
  view.global_step = exchanges_.global_step();
  for (const auto& hook : hooks_) hook->End(view);
  if (const int64_t late = exchanges_.versions().too_late()) {
    log_.Info("{} came too late for {} and {} dropped", Plural(late, "gradient"),
              late == 1 ? "its round" : "their rounds", late == 1 ? "was" : "were");
  }
}

// Waits until ps 0 has granted a step, and leased a batch for it. False: the run's last step is applied.
bool Worker::HaveStep() {
  TakeLease();
  while (exchanges_.steps() == 0 || !data_.HasBatch(local_step_)) {
    if (exchanges_.open() > 0) {
      client_.Collect();
      times_.MarkAnswer(Clock::now(), exchanges_.TakeHeld());
      TakeLease();
    } else if (!AskForStep()) {
      return false;
    }
  }
  AskForRows();
  return true;
}

void Worker::TakeLease() {
  if (const std::optional<Lease> lease = exchanges_.TakeLease()) data_.Take(*lease);
}

// False: the run is over. Outside async the others do not wait for a worker that has nothing to do.
bool Worker::AskForStep() {
  exchanges_.DropSteps();
  bool paused = false;
  while (true) {
    const wire::Grant* const grant =
        client_.Call(0, true, "step", [&](auto& builder) { return wire::CreateNeedStep(builder, paused); })
            .body_as_Grant();
    if (grant == nullptr) throw Failure(ExitCode::kInternal, "ps 0 answered NeedStep with something else");
    if (grant->over()) return false;
    if (grant->pause()) {
      client_.Leave();
      paused = true;
      continue;
    }
    exchanges_.AddSteps(grant->steps());
    for (const Lease& lease : DecodeLeases(grant->leases())) data_.Take(lease);
    const uint64_t clock = grant->clock();
    if (paused) Enter({{}, clock});
    times_.Mark(StepPart::kWait, Clock::now());  // the other workers' steps
    return true;
  }
}

// Of a table, after a time without batches: no answer brings the rows of the next one.
void Worker::AskForRows() {
  if (data_.keyed() == nullptr || asked_ > local_step_) return;
  while (exchanges_.open() > 0) client_.Collect();
  if (data_.keyed()->Ahead(1) == nullptr) return;
  if (config_.train.mode == TrainMode::kSync) return Enter({});
  AskAhead(0);
  client_.Collect();
}

// Reads the clock four times per step, between parts that are reported apart, so that a slow data source,
// processor, worker or network shows as such. Hooks cost a fifth reading, since they may take any time.
// Does not wait for a gradient that stays on a device: it is pushed and applied in the device's stream.
void Worker::Step(const Batch& batch, StepView& view) {
  times_.MarkBatch(Clock::now(), data_.source().TakeWaitedNanos());
  const bool count_correct = BeforeStep(batch, view);
  KeyedSource* const keyed = data_.keyed();
  int64_t values = layout_.size;
  if (keyed != nullptr) {
    view.keys = keyed->current().keys();
    view.weights = keyed->current().parameters();
    values += view.keys.size * layout_.table->width();
  }
  const net::LentBuffer& gradient = model_.NextGradient(values);
  const std::vector<uint32_t>& taken = data_.TakenOf(local_step_);
  if (SendsEarly()) exchanges_.Announce(gradient, static_cast<uint32_t>(view.rows), view.weight, taken);
  model_.model().Begin(view.weights, batch, model_.gradient(), count_correct);
  if (!model_.by_address()) {
    if (devices_.on_gpu()) StageNext();
    TakeResult(view);
    const auto& max = config_.train.optimizer.clip_norm;
    if (max && !NormOfRounds(config_.train) && view.rows > 0) {
      ClipToNorm(*max, {gradient.floats(), values});
    }
  }
  ExchangeRows rows;
  if (keyed != nullptr) {
    rows.of = &keyed->current();
    if (asked_ == local_step_ + config_.train.in_flight) rows.asks = keyed->Ahead(config_.train.in_flight);
    if (rows.asks != nullptr) ++asked_;
  }
  exchanges_.Push(gradient, static_cast<uint32_t>(view.rows),
                  {std::exchange(untold_loss_, std::nullopt), view.weight}, rows, taken);
  times_.Mark(StepPart::kCompute, Clock::now());
  StageNext();  // while the gradient travels
  times_.Mark(StepPart::kData, Clock::now());
  CollectWeights();
  times_.MarkAnswer(Clock::now(), exchanges_.TakeHeld());
  if (model_.by_address()) {
    TakeResult(view);
    times_.Mark(StepPart::kCompute, Clock::now());
  }
  AfterStep(view);
}

// Whether blocks of a gradient may go out before all of it is known: not if it may be left out. A small one
// is a single block of each ps.
bool Worker::SendsEarly() const {
  const bool clips = config_.train.optimizer.clip_norm && !NormOfRounds(config_.train);
  return layout_.size > kBlockValues && !layout_.table && !model_.by_address() && !clips &&
         !config_.hooks.skips();
}

// What is wrong with the next batch ends the run when it is this batch's turn, with all before it applied.
void Worker::StageNext() {
  try {
    data_.source().ReadAhead();
  } catch (const UserError&) {
    return;  // Next() meets it again
  }
  if (const Batch* next = data_.source().ahead()) model_.model().Stage(*next);
}

// Returns whether a hook wants the batch's rows that are classified right to be counted.
bool Worker::BeforeStep(const Batch& batch, StepView& view) {
  HookRequests requests;
  view.local_step = local_step_ + 1;
  view.rows = batch.rows;
  view.weight = WeightOf(batch);
  for (const auto& hook : hooks_) hook->BeforeStep(view, &requests);
  return requests.count_correct;
}

// Hooks see the values of a gradient on a device only when some are not finite.
void Worker::TakeResult(StepView& view) {
  const StepResult result = model_.model().End();
  view.loss = result.loss;
  view.correct = result.correct;
  HookRequests requests;
  if (!model_.by_address()) {
    for (const auto& hook : hooks_) {
      hook->OnGradient(view, model_.FetchGradient(), &requests);
      if (requests.skip) return Skip(view);
    }
  } else if (!result.gradient_finite || !std::isfinite(result.loss)) {
    view.weights = model_.Fetch();
    for (const auto& hook : hooks_) hook->OnGradient(view, model_.FetchGradient(), &requests);
    view.weights = model_.parameters();
  }
  if (view.rows > 0) untold_loss_ = result.loss;
}

// The step goes on as one of no rows.
void Worker::Skip(StepView& view) {
  ++skipped_;
  view.rows = view.correct = 0;
  view.weight.reset();
  view.loss = 0;
}

void Worker::CollectWeights() {
  if (exchanges_.open() == config_.train.in_flight) {
    client_.Collect();
  } else {
    client_.CollectArrived();
  }
  while (exchanges_.versions().torn()) Enter({});
}

void Worker::AfterStep(StepView& view) {
  if (!first_loss_ && view.rows > 0) first_loss_ = static_cast<double>(view.loss);
  ++local_step_;
  data_.CheckFeeder();
  activity_.local_step.store(static_cast<uint64_t>(local_step_), std::memory_order_relaxed);
  activity_.global_step.store(exchanges_.global_step(), std::memory_order_relaxed);
  if (!hooks_.empty()) {
    HookRequests requests;
    view.global_step = exchanges_.global_step();
    view.workers_here = peers_.heartbeat().workers();
    for (const auto& hook : hooks_) hook->AfterStep(view, &requests);
    if (requests.save || !requests.end_run.empty()) Ask(requests);
    times_.Mark(StepPart::kHooks, Clock::now());
  }
  if (const int64_t step = exchanges_.TakeEvaluation()) {
    EvaluateAfter(step);
    times_.Mark(StepPart::kHooks, Clock::now());
  }
  times_.EndStep();
  for (size_t part = 0; part < kStepParts; ++part) {
    const auto nanos = static_cast<uint64_t>(times_.Of(static_cast<StepPart>(part)).sum());
    activity_.part_nanos[part].store(nanos, std::memory_order_relaxed);
  }
  const LogHistogram& staleness = exchanges_.staleness().all();
  activity_.staleness_sum.store(static_cast<uint64_t>(staleness.sum()), std::memory_order_relaxed);
  activity_.staleness_count.store(static_cast<uint64_t>(staleness.count()), std::memory_order_relaxed);
  activity_.steps.store(static_cast<uint64_t>(times_.Of(StepPart::kCompute).count()),
                        std::memory_order_relaxed);
  TellTraffic();
}

void Worker::TellTraffic() {
  const net::ChannelStats all = Sum(Sum(channel_.stats(), data_.fed_stats()), data_.feeding_stats());
  activity_.Tell({all.bytes_sent, all.bytes_received, exchanges_.bytes_saved()});
}

// Hands the wishes of the hooks to ps 0, between exchanges.
void Worker::Ask(const HookRequests& requests) {
  const bool ends = !requests.end_run.empty();
  if (ends) log_.Info("the run ends early: {}", requests.end_run);
  while (exchanges_.open() > 0) client_.Collect();
  client_.Call(0, false, ends ? "stop" : "save", [&](auto& builder) {
    return wire::CreateHookRequest(builder, requests.save, ends ? builder.CreateString(requests.end_run) : 0);
  });
  ended_early_ |= ends;
}

// Evaluates on a set the weights that the worker has, or those of a snapshot. Unset: there are no rows, or
// the snapshot is gone.
std::optional<Evaluation> Worker::Evaluate(EvalOn set, Figures* figures, uint64_t snapshot) {
  const std::unique_ptr<BatchSource> source = EvaluationSource(set, config_, data_.loaded());
  if (source == nullptr) return std::nullopt;
  const char* const before = activity_.what;
  activity_.what = "eval";
  const auto check = [this] { client_.CheckAllAlive(); };
  std::optional<Evaluation> evaluation;
  if (layout_.table) {
    evaluation = EvaluateRows(*source, figures, snapshot);
  } else if (snapshot == 0 || client_.Read(nullptr, snapshot, model_.snapshot_here())) {
    const float* const weights = snapshot == 0 ? model_.parameters() : model_.SnapshotParameters();
    evaluation = EvaluateAll(model_.model(), weights, *source, check, figures);
  }
  activity_.what = before;
  return evaluation;
}

// Each batch with the rows of the table that it touches, as the snapshot has them, or as they are when it
// comes.
std::optional<Evaluation> Worker::EvaluateRows(BatchSource& source, Figures* figures, uint64_t snapshot) {
  while (exchanges_.open() > 0) client_.Collect();
  Evaluation sum;
  KeySorter sorter;
  KeyedBatch keyed;
  const BatchForm form = data_.batch_form();
  Batch batch;
  while (source.Next(&batch)) {
    keyed.Fill(batch, *layout_.table, &sorter, form);
    if (!client_.Read(&keyed, snapshot)) return std::nullopt;
    EvaluationSum one(model_.model(), keyed.parameters(), figures);
    one.Add(keyed.batch());
    sum.Add(one.sum());
  }
  return sum;
}

// ps 0 asks with each answer until it has the figures. A restarted worker that has yet to reach this step is
// asked again after it.
void Worker::EvaluateAfter(int64_t local_step) {
  if (local_step > local_step_ || local_step <= evaluated_step_) return;
  const EvalOn set = config_.eval.on;
  int64_t global_step = exchanges_.global_step();
  // With leases ps 0 must know that it takes no step meanwhile.
  const bool asks = config_.eval.keep_best || config_.data.split == Split::kDynamic;
  uint64_t snapshot = asks ? AskForSnapshot(local_step, &global_step) : 0;
  const EvalMetric metric = config_.eval.metric;
  const bool needs_outputs = metric != EvalMetric::kLoss && metric != EvalMetric::kAccuracy;
  std::optional<Figures> outputs;
  const auto evaluate = [&] {
    if (needs_outputs)
      outputs.emplace(model_.model().outputs(), HasClasses(config_.model), ScoreTable::kMaxScoresInRun,
                      std::nullopt, LossOf(config_.model));
    return Evaluate(set, outputs ? &*outputs : nullptr, snapshot);
  };
  std::optional<Evaluation> evaluation = evaluate();
  if (!evaluation && snapshot != 0 && HasReplica(config_)) {  // it is gone with a ps that was lost
    global_step = exchanges_.global_step();
    snapshot = AskForSnapshot(local_step, &global_step);
    evaluation = evaluate();
  }
  if (!evaluation && snapshot != 0) {  // it is gone
    snapshot = 0;
    global_step = exchanges_.global_step();
    evaluation = evaluate();
  }
  const EvaluationFigures none,
      figures = ReportedFigures(evaluation.value_or(Evaluation()), outputs ? &*outputs : nullptr,
                                data_.loaded().form.classes, [this] { client_.CheckAllAlive(); });
  while (exchanges_.open() > 0) client_.Collect();
  const bool on_test = set == EvalOn::kTest;
  ended_early_ |=
      TellEvaluation(local_step, global_step, on_test ? none : figures, on_test ? figures : none, snapshot);
  evaluated_step_ = local_step;
  if (!evaluation) return;
  // Not before: ps 0 has taken it and, if it is the best, keeps its weights.
  LogEvaluation(set, global_step, local_step_, *evaluation, metric, FigureOf(figures, metric), log_);
  if (summary_) summary_->OnEvaluation(set, global_step, figures);
}

// Waits until every ps has the snapshot that ps 0 saves if it is the best. Returns its number and sets its
// step; 0: there is none.
uint64_t Worker::AskForSnapshot(int64_t local_step, int64_t* global_step) {
  while (exchanges_.open() > 0) client_.Collect();
  if (config_.data.split == Split::kDynamic) exchanges_.DropSteps();
  const wire::Grant* const grant =
      client_
          .Call(0, true, "the snapshot to evaluate",
                [&](auto& builder) {
                  return wire::CreateNeedSnapshot(builder, static_cast<uint64_t>(local_step));
                })
          .body_as_Grant();
  if (grant == nullptr) throw Failure(ExitCode::kInternal, "ps 0 answered NeedSnapshot with something else");
  if (grant->snapshot() != 0) *global_step = CountIn(grant->global_step());
  return grant->snapshot();
}

// Returns whether the evaluation ends the run early.
bool Worker::TellEvaluation(int64_t local_step, int64_t global_step, const EvaluationFigures& validation,
                            const EvaluationFigures& test, uint64_t snapshot) {
  const net::ChannelStats since_done = local_step == 0 ? SinceDone() : net::ChannelStats();
  const wire::Grant* answer =
      client_
          .Call(0, true, "the figures of an evaluation",  // a run that stops does not answer
                [&](auto& builder) {
                  const auto text = [&](const EvaluationFigures& figures) {
                    return figures.rows ? builder.CreateString(EvaluationToJson(figures)) : 0;
                  };
                  const auto held_out = text(validation), tested = text(test);
                  return wire::CreateEvaluated(builder, static_cast<uint64_t>(local_step),
                                               static_cast<uint64_t>(global_step), held_out, tested,
                                               since_done.bytes_sent, since_done.bytes_received, snapshot);
                })
          .body_as_Grant();
  if (answer == nullptr) throw Failure(ExitCode::kInternal, "ps 0 answered Evaluated with something else");
  return answer->over();
}

// Tells every ps, ps 0 last: when ps 0 knows, all know.
void Worker::SayDone() {
  activity_.what = "wait";
  const bool classifies = own_evaluation_ && own_evaluation_->classifies;
  const double accuracy = classifies ? own_evaluation_->accuracy() : kNoFigure;
  const double first_loss = from_initial_values_ ? first_loss_.value_or(kNoFigure) : kNoFigure;
  WorkerFigures own = FiguresOf(times_, exchanges_.staleness());
  const SkippedRows skipped = data_.Skipped();
  own.gradients_skipped = skipped_;
  own.rows_skipped = skipped.bad;
  own.rows_dropped = skipped.with_gaps + skipped.unlabelled;
  own.unseen_categories = skipped.unseen;
  const std::string figures = FiguresToJson(own);
  for (size_t ps = peers_.size(); ps-- > 0;) {
    told_ = Sum(channel_.stats(), data_.fed_stats());
    client_.Call(ps, false, "done", [&](auto& builder) {
      return wire::CreateDone(builder, static_cast<uint64_t>(local_step_), untold_loss_, first_step_nanos_,
                              last_step_nanos_, told_.bytes_sent, told_.bytes_received, accuracy,
                              builder.CreateString(figures), builder.CreateString(DevicesName(devices_)),
                              first_loss, exchanges_.bytes_saved());
    });
  }
}

// The headers and payloads since Done, those of the batches for other workers included.
net::ChannelStats Worker::SinceDone() const {
  const net::ChannelStats all = Sum(channel_.stats(), data_.feeding_stats());
  return {all.bytes_sent - told_.bytes_sent, all.bytes_received - told_.bytes_received, 0};
}

// Runs when all workers are done.
void Worker::EvaluateFinalWeights() {
  client_.Pull();  // also gets the last global step
  EvaluationFigures validation, test;
  if (config_.eval.at_end) {
    validation = EvaluateFinal(EvalOn::kValidation);
    test = EvaluateFinal(EvalOn::kTest);
  }
  TellEvaluation(0, exchanges_.global_step(), validation, test);
}

EvaluationFigures Worker::EvaluateFinal(EvalOn set) {
  Figures figures(model_.model().outputs(), HasClasses(config_.model), ScoreTable::kMaxScoresInRun, {},
                  LossOf(config_.model));
  const std::optional<Evaluation> evaluation = Evaluate(set, &figures);
  if (!evaluation) return {};
  const EvaluationFigures reported = ReportedFigures(*evaluation, &figures, data_.loaded().form.classes,
                                                     [this] { client_.CheckAllAlive(); });
  if (summary_) summary_->OnEvaluation(set, exchanges_.global_step(), reported);
  return reported;
}

// The other workers go on, and get the steps granted to this one.
void Worker::Leave() {
  SayDone();
  RunSummary summary;
  summary.status = "stopped";
  summary.global_step = exchanges_.global_step();
  throw RunStopped(ExitCode::kTerminated,
                   fmt::format("left the run by {} after {} (failure.on_sigterm: leave)",
                               SignalName(activity_.stop->signal()), Plural(local_step_, "local step")),
                   std::move(summary));
}

RunSummary Worker::Reached() const {
  RunSummary summary;
  if (first_step_nanos_ == 0) return summary;
  summary.global_step = exchanges_.global_step();
  if (ended_going_back_) return summary;
  const KnownCheckpoint told = peers_.heartbeat().checkpoint();
  const std::string& where = told.where.empty() ? newest_.where : told.where;
  if (!where.empty()) summary.checkpoint = where.substr(where.find(':') + 1);
  return summary;
}

RunSummary Worker::WaitForEnd() {
  const wire::Envelope* answer = &client_.Call(0, true, "the end", kWaitEnd);
  while (answer->body_type() == wire::Body::Grant && answer->body_as_Grant()->evaluate()) {
    EvaluateFinalWeights();
    answer = &client_.Call(0, true, "the end", kWaitEnd);
  }
  const wire::End* end = answer->body_as_End();
  RunSummary summary;
  if (end == nullptr || !FromWireJson(end->json()->str(), &summary)) {
    throw Failure(ExitCode::kInternal, "ps 0 ended the run with a summary that cannot be read");
  }
  if (summary_) summary_->End(ExitCode::kOk);
  peers_.SayBye();
  return summary;
}

}  // namespace dtrain
