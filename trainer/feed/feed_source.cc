#include "trainer/feed/feed_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "trainer/config/config.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

// How often a wait checks heartbeats and repeats.
constexpr milliseconds kSlice{100};
constexpr TaskId kFeedingWorker{Role::kWorker, 0};

}  // namespace

FeedSource::FeedSource(const Config& config, int worker, net::Transport& transport, const Activity& activity,
                       std::function<void()> attend)
    : config_(config),
      worker_(worker),
      attend_(std::move(attend)),
      channel_(transport.NewChannel()),
      feeder_(*channel_, config.cluster, kFeedingWorker, static_cast<size_t>(kMaxBatchesAhead)),
      heartbeat_(transport, {{feeder_.node(), feeder_.address()}}, config.failure.detect_s, activity),
      reader_(config) {}

void FeedSource::Join(uint64_t run_id, uint64_t token) {
  run_id_ = run_id;
  token_ = token;
  heard_ = started_ = false;
  begun_ = Clock::now();
  BeginAt(0);
  AwaitNext();
}

void FeedSource::Seek(int64_t local_step) {
  if (local_step != next_) BeginAt(local_step);
}

void FeedSource::Follow(const DataPlan& plan) {
  if (plan == plan_) return;
  plan_ = plan;
  next_ = 0;
}

void FeedSource::Start() {
  started_ = true;
  BeginAt(next_);
}

// Drops the open requests and the batches that are here.
void FeedSource::BeginAt(int64_t local_step) {
  for (Arrived& slot : slots_) slot = Arrived();
  feeder_.Clear();
  next_ = arrived_ = asked_ = local_step;
  end_seen_ = false;
  Ask();
}

void FeedSource::Ask() {
  for (; asked_ < next_ + ahead_ && !end_seen_; ++asked_) {
    feeder_.Ask({run_id_, 0}, [&](auto& builder) {
      return wire::CreateNeedBatch(builder, static_cast<uint32_t>(worker_), static_cast<uint64_t>(asked_),
                                   started_, token_);
    });
  }
}

bool FeedSource::Next(Batch* batch) {
  AwaitNext();
  if (SlotOf(next_).batch->end()) return false;
  current_ = std::exchange(SlotOf(next_), Arrived());
  ++next_;
  Ask();
  epoch_ = static_cast<int64_t>(current_.batch->epoch());
  batch_in_epoch_ = static_cast<int64_t>(current_.batch->batch_in_epoch());
  batches_per_epoch_ = static_cast<int64_t>(current_.batch->batches_per_epoch());
  *batch = reader_.Read(*current_.batch, AlignedValues(current_));
  return true;
}

void FeedSource::ReadAhead() {
  for (int i = 0; i < kMessagesInARow && ReceiveOne(TimePoint()); ++i) {
  }
}

void FeedSource::AwaitNext() {
  if (SlotOf(next_).batch != nullptr) return;
  const TimePoint begun = Clock::now();
  for (int in_a_row = 1; SlotOf(next_).batch == nullptr; ++in_a_row) {
    if (ReceiveOne(Clock::now() + kSlice) && in_a_row % kMessagesInARow != 0) continue;
    attend_();
    const TimePoint now = Clock::now();
    feeder_.OnQuiet(now);
    CheckAlive(now);
  }
  waited_ += Clock::now() - begun;
}

int64_t FeedSource::TakeWaitedNanos() {
  return std::chrono::nanoseconds(std::exchange(waited_, Clock::duration())).count();
}

bool FeedSource::ReceiveOne(TimePoint deadline) {
  net::NodeId from = 0;
  net::Message message;
  if (channel_->Receive(deadline, &from, &message) != net::ReceiveResult::kMessage) return false;
  const wire::Envelope* envelope = net::Decode(message);
  if (envelope == nullptr || from != feeder_.node()) return true;
  if (const auto* refuse = envelope->body_as_Refuse()) OnRefuse(*refuse);
  if (const auto* batch = envelope->body_as_DataBatch()) OnBatch(*envelope, *batch, std::move(message));
  return true;
}

// Answers may come in any order, because one that worker 0 could not send is asked for again.
void FeedSource::OnBatch(const wire::Envelope& envelope, const wire::DataBatch& batch, net::Message message) {
  if (envelope.run_id() != run_id_ || feeder_.open() == 0) return;
  const uint64_t first = feeder_.oldest_open();
  const uint64_t after_first = batch.local_step() - static_cast<uint64_t>(arrived_);
  if (envelope.request() < first) feeder_.Answered(envelope.request());  // repeated, or from before Start()
  if (after_first >= feeder_.open() || envelope.request() != first + after_first) return;
  const auto step = static_cast<int64_t>(batch.local_step());
  if (SlotOf(step).batch != nullptr) return;
  if (batch.devices() != config_.device.towers()) {
    throw UserError(
        "device.ids lists {} here and {} at {}; with data.split: feed the numbers must be equal, since a "
        "step's batches are dealt out there. Give every worker as many.",
        config_.device.towers(), batch.devices(), feeder_.name());
  }
  std::string wrong = WhyNotFedBatch(config_, batch, net::Tensor(message, batch));
  if (wrong.empty() && max_rows_ != 0 && batch.max_rows() > max_rows_) {  // the model is made for max_rows()
    wrong = fmt::format("it names {} rows, and the first answer named {}", batch.max_rows(), max_rows_);
  }
  if (!wrong.empty()) {
    throw Failure(ExitCode::kInternal, fmt::format("the batch of local step {} from {} is refused: {}",
                                                   arrived_, feeder_.name(), wrong));
  }
  TakeIn(batch, std::move(message));
}

void FeedSource::TakeIn(const wire::DataBatch& batch, net::Message message) {
  if (!heard_) heartbeat_.Watch(0);
  heard_ = true;
  end_seen_ = end_seen_ || batch.end();
  if (max_rows_ == 0) max_rows_ = batch.max_rows();
  if (batch.rows() > 0) {
    const auto bytes = static_cast<int64_t>(net::Tensor(message, batch).size);
    max_bytes_ = std::max(max_bytes_, bytes / batch.rows() * max_rows_);
  }
  ahead_ = BatchesAhead(max_bytes_);
  SlotOf(static_cast<int64_t>(batch.local_step())) = {std::move(message), &batch};
  for (; feeder_.open() > 0 && SlotOf(arrived_).batch != nullptr; ++arrived_) {
    feeder_.Answered(feeder_.oldest_open());
  }
  Ask();
}

// Reason Run: worker 0 or this task is about to join the run of the other.
void FeedSource::OnRefuse(const wire::Refuse& refuse) {
  refusal_ = ShortText(refuse.text()->str());
  if (refuse.reason() == wire::Reason::Run) return;
  throw Failure(ExitCode::kInternal,
                fmt::format("{} refused a request of worker {}: {}", feeder_.name(), worker_, refusal_));
}

// Why nothing may come, as far as this worker knows: a message that is too large ends its connection.
std::string FeedSource::Hints() const {
  std::string hints = refusal_.empty() ? "" : fmt::format(" It says: {}.", refusal_);
  const int64_t least = FedBatchBytes(FedForm(config_, RowsPerStep(config_), true), *config_.model.inputs);
  if (least > config_.net.max_message_mb << 20) {
    hints += fmt::format(" Is a batch larger than net.max_message_mb = {} of this worker?",
                         config_.net.max_message_mb);
  }
  return hints;
}

// Throws when nothing can come any more.
void FeedSource::CheckAlive(TimePoint now) const {
  const std::string said = Hints();
  if (!heard_) {
    if (SecondsBetween(begun_, now) <= config_.failure.startup_timeout_s) return;
    throw PeerLost(
        "{}: no batch for worker {} in {} s (failure.startup_timeout_s), and with data.split: feed all come "
        "from there.{} Is it still loading, or is its address not reached? See its log.",
        feeder_.name(), worker_, config_.failure.startup_timeout_s, said);
  }
  if (heartbeat_.Lost(0)) {
    throw PeerLost(
        "{} has not been heard for {:.1f} s (failure.detect_s = {}), and the batch of local step {} comes "
        "from there (data.split: feed). Look at its log.",
        feeder_.name(), heartbeat_.SilentSeconds(0), config_.failure.detect_s, next_);
  }
  if (!feeder_.Overdue(now, config_.net.timeout_ms)) return;
  throw PeerLost(
      "{}: no batch of local step {} in {} ms (net.timeout_ms), though it is alive.{} Raise net.timeout_ms "
      "or lower train.batch_size if the network is slow; see its log.",
      feeder_.name(), next_, config_.net.timeout_ms, said);
}

// Copies values that lie at an unaligned address, as those of small messages may.
net::TensorView FeedSource::AlignedValues(const Arrived& arrived) {
  const net::TensorView values = net::Tensor(arrived.message, *arrived.batch);
  if (reinterpret_cast<uintptr_t>(values.data) % alignof(int32_t) == 0) return values;
  aligned_.resize((values.size + sizeof(int32_t) - 1) / sizeof(int32_t));
  std::memcpy(aligned_.data(), values.data, values.size);
  return {reinterpret_cast<const std::byte*>(aligned_.data()), values.size};
}

}  // namespace dtrain
