#include "trainer/worker/worker_data.h"

#include <algorithm>

#include "base/error.h"
#include "trainer/data/data_warnings.h"
#include "trainer/data/form_text.h"
#include "trainer/peer/form_message.h"

namespace dtrain {

WorkerData::WorkerData(const Config& config, int worker, net::Transport& transport, const Activity& activity,
                       std::function<void()> attend, Logger& log)
    : config_(config),
      worker_(worker),
      transport_(transport),
      activity_(activity),
      attend_(std::move(attend)),
      log_(log) {}

void WorkerData::Join(uint64_t run_id) {
  if (source_ == nullptr) Open(run_id);
  if (feeder_) feeder_->set_run_id(run_id);
  if (fed_ != nullptr) fed_->Join(run_id);
}

void WorkerData::Open(uint64_t run_id) {
  if (IsFed(config_, worker_)) {
    auto source = std::make_unique<FeedSource>(config_, worker_, transport_, activity_, attend_);
    fed_ = source.get();
    source_ = std::move(source);
    log_.Info("all batches come from {}", TaskNameAndAddress(config_.cluster, {Role::kWorker, 0}));
    return;
  }
  loaded_ = LoadData(config_);
  if (worker_ == 0) {
    for (const std::string& warning : DataWarnings(config_, loaded_)) log_.Warning("{}", warning);
  }
  if (!loaded_.form.classes.empty()) log_.Info("{}", ClassNamesText(loaded_.form.classes));
  source_ = MakeBatchSource(config_, loaded_.train, worker_, static_cast<int>(config_.cluster.worker.size()));
  if (feed_channel_) {
    feeder_ = std::make_unique<Feeder>(config_, loaded_.train, std::move(feed_channel_), run_id, log_);
    log_.Info("feeds the other workers their batches");
  }
}

int64_t WorkerData::MostRows() const {
  if (fed_ != nullptr) return std::min(fed_->most_rows(), config_.train.batch_size);
  const int64_t test_rows = loaded_.test == nullptr ? 0 : loaded_.test->rows().value_or(0);
  return MaxBatchRows(config_, loaded_.train->rows(), test_rows);
}

const InputForm* WorkerData::FormForPs() const {
  if (config_.checkpoint.writer != CheckpointWriter::kPs) return nullptr;
  const size_t bytes = FormBytes(loaded_.form);
  if (bytes <= kMostFormBytes) return &loaded_.form;
  log_.Warning(
      "names and scales of the data's columns are {} bytes, more than {}: checkpoints of checkpoint.writer: "
      "ps will not have them, and dtrain eval and predict will read data.train",
      bytes, kMostFormBytes);
  return nullptr;
}

void WorkerData::TakeUp(const std::string& dealt) {
  Dealt taken;
  if (!dealt.empty() && !FromJson(dealt, &taken)) {
    throw Failure(ExitCode::kInternal, "ps 0 said something unreadable of the data that was taken before");
  }
  if (taken != source_->dealt()) source_->Deal(taken);
}

}  // namespace dtrain
