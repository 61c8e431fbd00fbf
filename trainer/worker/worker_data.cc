#include "trainer/worker/worker_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/names.h"
#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/order/held_out.h"
#include "trainer/peer/form_message.h"
#include "trainer/sets/cache_file.h"
#include "trainer/sets/load_data.h"
#include "trainer/survey/data_warnings.h"

namespace dtrain {

WorkerData::WorkerData(const Config& config, int worker, const Layout& layout, net::Transport& transport,
                       const Activity& activity, std::function<void()> attend, Logger& log)
    : config_(config),
      worker_(worker),
      layout_(layout),
      transport_(transport),
      activity_(activity),
      attend_(std::move(attend)),
      log_(log),
      leased_(config.data.split == Split::kDynamic),
      devices_(config.device.towers()) {}

void WorkerData::Join(uint64_t run_id, uint64_t feed_token) {
  if (source_ == nullptr) Open(run_id, feed_token);
  if (feeder_) feeder_->set_run(run_id, feed_token);
  if (fed_ != nullptr) fed_->Join(run_id, feed_token);
}

void WorkerData::Open(uint64_t run_id, uint64_t feed_token) {
  if (IsFed(config_, worker_)) {
    auto source = std::make_unique<FeedSource>(config_, worker_, transport_, activity_, attend_);
    fed_ = source.get();
    source_ = std::move(source);
    Key();
    log_.Detail("all batches come from {}", TaskNameAndAddress(config_.cluster, {Role::kWorker, 0}));
    return;
  }
  loaded_ = shared_->Load(config_, columns_, Environment());
  // Synthetic rows follow from settings that all tasks have compared.
  const bool read = config_.data.train.format != DataFormat::kSynthetic;
  if (read) fingerprint_ = shared_->Fingerprint(loaded_);
  if (worker_ == 0) {
    for (const std::string& warning : DataWarnings(config_, *loaded_)) log_.Warning("{}", warning);
  }
  if (const PassFacts* const facts = loaded_->train->facts();
      facts != nullptr && !facts->why_parsed.empty()) {
    const std::string text = fmt::format("all rows were parsed before the first step: {}", facts->why_parsed);
    worker_ == 0 ? log_.Info("{}", text) : log_.Detail("{}", text);
  }
  if (const auto& classes = loaded_->form.classes; !classes.empty()) {
    worker_ == 0 ? log_.Info("{}", ClassNamesText(classes)) : log_.Detail("{}", ClassNamesText(classes));
  }
  MakeSource();
  if (feed_channel_) {
    feeder_ =
        std::make_unique<Feeder>(config_, loaded_->train, std::move(feed_channel_), run_id, feed_token, log_);
    log_.Detail("feeds the other workers their batches");
  }
}

void WorkerData::MakeSource() {
  source_ =
      MakeBatchSource(config_, loaded_->train, worker_, static_cast<int>(config_.cluster.worker.size()));
  Key();
  source_->Attend([this] {
    attend_();
    return !activity_.leaving();
  });
}

// Where the weights are rows of a table, the batches of source_ are numbered by these.
void WorkerData::Key() {
  if (!layout_.table) return;
  const bool waits = fed_ != nullptr || loaded_->train->stream() != nullptr;
  auto keyed = std::make_unique<KeyedSource>(std::move(source_), *layout_.table, config_.train.in_flight,
                                             batch_form(), reads_on_thread_ && !waits);
  keyed_ = keyed.get();
  source_ = std::move(keyed);
}

// Numbers beside the rows of a table are scaled here, as the rows of worker 0 say, which ps 0 knows.
void WorkerData::TakeScale(const std::optional<InputForm>& form) {
  if (fed_ == nullptr || layout_.form.numbers.count == 0 || config_.data.scale == FeatureScale::kNone) return;
  if (!form || form->scale.empty()) {
    throw UserError(
        "data.scale: the scale of {} is too long to be told to the workers that worker 0 feeds. Set "
        "data.split: shard, or data.scale: none.",
        Plural(layout_.form.numbers.count, "number"));
  }
  const auto scaled = static_cast<int64_t>(form->scale.shift.size());
  if (scaled != layout_.form.numbers.count) {
    throw Failure(ExitCode::kInternal, fmt::format("the run has {}, and the model {}",
                                                   Plural(scaled, "number"), layout_.form.numbers.count));
  }
  keyed_->UseScale(form->scale);
}

BatchForm WorkerData::batch_form() const {
  BatchForm form = layout_.form;
  if (form.numbers.count > 0) form.scale = loaded_->form.scale;
  return form;
}

// What a command that writes rows may want to know.
std::vector<std::string> WorkerData::Environment() const {
  return {fmt::format("DTRAIN_WORKER={}", worker_),
          fmt::format("DTRAIN_WORKERS={}", config_.cluster.worker.size())};
}

SkippedRows WorkerData::Skipped() {
  SkippedRows all = loaded_->skipped, later;
  source_->AddSkipped(&later);
  const std::string text = SkippedText("data.train", later);
  if (worker_ == 0 && !text.empty()) log_.Warning("{}", text);
  all.Add(later);
  return all;
}

int64_t WorkerData::MaxRows() const {
  if (fed_ != nullptr) return std::min(fed_->max_rows(), config_.train.batch_size);
  const int64_t test_rows = loaded_->test == nullptr ? 0 : loaded_->test->rows().value_or(0);
  return MaxBatchRows(config_, loaded_->train->rows(), test_rows);
}

std::optional<DataFacts> WorkerData::Facts() {
  if (loaded_->train == nullptr) return std::nullopt;
  DataFacts facts;
  facts.scale = ScaleChecksum(loaded_->form.scale);
  facts.rows = loaded_->train->rows();
  facts.read = config_.data.train.format != DataFormat::kSynthetic;
  facts.labels = fingerprint_.labels;
  facts.features = fingerprint_.features;
  facts.has_test = loaded_->test != nullptr && loaded_->test->rows();
  facts.has_validation = HeldOutRows(config_.data, facts.rows) > 0;
  const size_t bytes = FormBytes(loaded_->form);
  if (bytes <= kMaxFormBytes) {
    facts.form = loaded_->form;
  } else if (!std::exchange(told_too_long_, true)) {
    log_.Warning(
        "names and scales of the data's columns are {} bytes, more than {}: checkpoints will not have them, "
        "and dtrain eval and predict will read data.train{}",
        bytes, kMaxFormBytes,
        loaded_->form.scale.shift.empty() ? "" : "; each worker scales by its own rows");
  }
  return facts;
}

// Weights mean nothing to rows that are read in another way than those they were trained with.
bool WorkerData::UseFit(const InputForm& fit) {
  if (!IsFitted(fit) || loaded_->train == nullptr) return false;
  const InputForm& here = loaded_->form;
  const bool same_scale = fit.scale.shift.empty() || fit.scale == here.scale;
  const bool same_columns = fit.columns.empty() || HasHashedColumns(fit) || fit.columns == here.columns;
  const bool same_classes = fit.classes.empty() || here.classes.empty() || fit.classes == here.classes;
  if (same_scale && same_columns && same_classes) return false;
  const bool sparse = HasSparseRows(config_.data);  // only numbers are scaled
  const auto features =
      static_cast<int64_t>(sparse || fit.columns.empty() ? fit.scale.shift.size() : fit.features.size());
  const int64_t there = sparse ? layout_.form.numbers.count : loaded_->train->inputs();
  if (features != there && !(same_scale && same_columns)) {
    throw Failure(ExitCode::kInternal,
                  fmt::format("the run has {}, and the data has {}", Plural(features, "feature"), there));
  }
  const std::vector<std::string>& paths = config_.data.train.path;
  if (!paths.empty() && IsStandardInput(paths[0])) {
    throw UserError(
        "standard input: its first rows give another {} than the run has, and they cannot be read again. Use "
        "exec:cat FILE in place of -.",
        !same_scale     ? "data.scale"
        : !same_columns ? "form of the columns"
                        : "order of classes");
  }
  log_.Info("{} that of the run; the rows here would give another one. Reading them again",
            !same_scale     ? "data.scale is"
            : !same_columns ? "the form of the columns is"
                            : "the order of classes is");
  const std::optional<int64_t> rows = loaded_->train->rows();
  source_.reset();
  loaded_.reset();  // there may be no memory for both
  loaded_ = shared_->Load(config_, fit, Environment());
  if (loaded_->train->rows() != rows) {
    throw UserError("{}: has {} now, and had {} when this run began. Start again when nobody writes to it.",
                    PathText(config_.data.train), Plural(loaded_->train->rows().value_or(0), "row"),
                    rows.value_or(0));
  }
  if (const std::string text = SkippedText("data.train", loaded_->skipped); worker_ == 0 && !text.empty())
    log_.Warning("{}", text);
  MakeSource();
  if (feeder_) feeder_->UseRows(loaded_->train);
  return true;
}

void WorkerData::Take(const Lease& lease) {
  if (!leases_.empty() && lease.step < EndOf(leases_.back())) return;
  leases_.push_back(lease);
  source_->Take(lease);
}

const std::vector<uint32_t>& WorkerData::TakenOf(int64_t local_step) {
  static const std::vector<uint32_t> kNone;
  while (!leases_.empty() && EndOf(leases_.front()) <= local_step) leases_.pop_front();
  return leases_.empty() ? kNone : leases_.front().taken;
}

bool WorkerData::TakeUp(const wire::Start& start) {
  std::optional<InputForm> form;
  if (start.inputs() != nullptr) form = DecodeForm(*start.inputs());
  const bool is_new = form && UseFit(*form);
  TakeScale(form);
  const DataFingerprint chief{static_cast<int64_t>(start.rows()), start.labels(), start.features()};
  CompareRows(chief);
  if (leased_ && chief.rows > 0 && fingerprint_.rows > 0 && chief.rows != fingerprint_.rows) {
    throw UserError(
        "data.train has {} here, and {} where the run began. With data.split: dynamic every worker reads any "
        "of "
        "them: copy one file to all machines.",
        Plural(fingerprint_.rows, "row"), chief.rows);
  }
  const std::string dealt = start.dealt() == nullptr ? "" : start.dealt()->str();
  DataPlan taken;
  if (!dealt.empty() && !FromJson(dealt, &taken)) {
    throw Failure(ExitCode::kInternal, "ps 0 said something unreadable of the data that was taken before");
  }
  leases_.clear();
  if (leased_ || taken != source_->plan()) source_->Follow(taken);
  if (feeder_) feeder_->Follow(taken);
  if (feeder_) feeder_->Start();
  if (fed_ != nullptr) fed_->Start();
  return is_new;
}

void WorkerData::CompareRows(const DataFingerprint& chief) {
  const std::string text = OtherRowsText(fingerprint_, chief);
  if (!text.empty() && !std::exchange(told_other_rows_, true)) log_.Warning("{}", text);
}

}  // namespace dtrain
