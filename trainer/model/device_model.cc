#include "trainer/model/device_model.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace dtrain {
namespace {

// A run has a few kinds for each slot and each gradient buffer; train.in_flight sets the number of buffers.
// With more kinds, shapes do not repeat.
constexpr size_t kMaxKinds = 1024;

// Another thread may have spoilt a capture, so it is tried again.
constexpr int kMaxFailures = 3;

}  // namespace

bool StepGraphs::Launch(const Kind& kind, gpu::cuda::StreamHandle run, const std::function<void()>& work) {
  if (graphs_.size() >= kMaxKinds && graphs_.count(kind) == 0) Clear();
  const auto [at, is_first] = graphs_.try_emplace(kind);
  if (is_first) return false;
  Entry& entry = at->second;
  if (!entry.captured) {
    if (failures_ == kMaxFailures) return false;
    entry.captured = Capture(work, &entry.graph);
    if (!entry.captured) ++failures_;
    if (!entry.captured) return false;
  }
  queue_.runtime().Launch(run, entry.graph);
  return true;
}

// If it fails, none of `work` is done. A failed device reports its error again when the work is queued.
bool StepGraphs::Capture(const std::function<void()>& work, gpu::cuda::GraphHandle* graph) {
  gpu::cuda::Runtime& runtime = queue_.runtime();
  try {
    runtime.BeginCapture(queue_.stream());
    try {
      work();
    } catch (...) {
      runtime.AbortCapture(queue_.stream());
      throw;
    }
    *graph = runtime.EndCapture(queue_.stream());
    return true;
  } catch (const gpu::cuda::DeviceError&) {
    return false;
  }
}

// The runtime keeps a graph that still runs until it is done.
void StepGraphs::Clear() {
  for (const auto& [kind, entry] : graphs_) {
    if (entry.captured) queue_.runtime().Delete(entry.graph);
  }
  graphs_.clear();
}

namespace {

using gpu::cuda::Buffer;
using gpu::cuda::Event;
using gpu::cuda::PinnedBuffer;
using gpu::cuda::StreamHandle;

// Values that no operation writes: a NaN with a payload of our own, and a negative number.
constexpr uint32_t kPendingLoss = 0x7fc0d7a1;
constexpr int64_t kPendingCount = -1;
// How long a result is polled, which costs a core but no call; after that, the step's end is awaited.
constexpr std::chrono::microseconds kPollTime{200};

// A smaller gradient shares its pages with other data, and is copied quickly.
constexpr int64_t kMinToPin = 1 << 20;

int64_t InputsOf(const ModelConfig& config) { return *config.inputs; }

// The device writes at the same time, by design; the fake device of tests does so in another thread, which
// ThreadSanitizer would report as a race. Each value of 4 or 8 bytes is read whole and judged alone.
template <typename T>
__attribute__((no_sanitize_thread)) T ReadOnce(const T& value) {
  return *static_cast<const volatile T*>(&value);
}

template <typename T>
__attribute__((no_sanitize_thread)) void WriteOnce(T* place, T value) {
  *static_cast<volatile T*>(place) = value;
}

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

DeviceModel::DeviceModel(const ModelConfig& config, const Layout& layout, int64_t max_rows,
                         const Placement& placement, Reduce reduce)
    : layout_(layout),
      owner_(placement.device),
      device_(*owner_),
      run_(placement.shared),
      check_finite_(placement.check_finite),
      compute_(device_),
      uploads_(device_),
      downloads_(device_),
      stream_(compute_),
      values_(compute_, DenseNet::FloatsNeeded(config, max_rows), "a batch's outputs"),
      net_(config, layout, max_rows, stream_, values_.data(), reduce),
      weights_(compute_, layout.size, "a copy of the weights"),
      gradient_(compute_, shared() ? 0 : layout.size, "the gradient"),
      inputs_(compute_, max_rows * InputsOf(config), "a batch's inputs"),
      results_(device_.runtime(), 1, "a step's results"),
      stage_(uploads_, max_rows),
      evaluation_stage_(uploads_, max_rows),
      pinned_(placement.pinned),
      graphs_(compute_),
      uploaded_(device_),
      downloaded_(device_),
      joined_(device_),
      done_(device_) {
  for (size_t i = 0; i < net_.layers().size(); ++i) layer_done_.emplace_back(device_);
  // Nothing writes what lies between variables.
  compute_.Fill(gradient_.data(), 0, gradient_.size() * static_cast<int64_t>(sizeof(float)));
  compute_.Wait();  // other streams use the memory from now on
}

// Waits, because queued work reads and writes this object's memory.
DeviceModel::~DeviceModel() {
  try {
    device_.runtime().Wait(run_stream());
    for (const gpu::cuda::Queue* queue : {&compute_, &uploads_, &downloads_}) {
      device_.runtime().Wait(queue->stream());
    }
  } catch (const gpu::cuda::DeviceError&) {
    // The device has failed and the run has ended with its error, so no work is left.
  }
}

int64_t DeviceModel::Keep(gpu::MatrixView<const uint8_t> bytes, gpu::MatrixView<const float> floats) {
  data_.reset();
  stage_.set_data(nullptr);
  if (bytes.data == nullptr && floats.data == nullptr) return 0;
  data_ = std::make_unique<DeviceData>(uploads_, bytes, floats);
  stage_.set_data(data_.get());
  return data_->size_bytes();
}

void DeviceModel::Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) {
  // The last step was not ended, because the run went back to a checkpoint.
  if (std::exchange(begun_, true)) device_.runtime().Wait(run_stream());
  const float* const weights = ParametersOnDevice(parameters);
  float* const target = shared() ? gradient : DownloadTo(gradient);
  const StreamHandle run = run_stream();
  const DeviceBatch& staged = stage_.Use(batch, run);
  ResetResults(count_correct);
  const auto work = [&] { QueueStep(weights, staged, target, count_correct); };
  const StepGraphs::Kind kind{staged.rows, staged.slot, staged.bytes.table.data != nullptr,
                              weights,     target,      count_correct};
  // By reference, because a launched graph needs no copy of it, and copying allocates.
  if (!graphs_.Launch(kind, run, std::cref(work))) QueueAlone(std::cref(work));
  stage_.Used(run);
  done_.Record(run);
}

StepResult DeviceModel::End() {
  begun_ = false;
  shared() ? AwaitResults() : done_.Wait();
  if (wanted_ != nullptr) std::memcpy(wanted_, staging_.data(), static_cast<size_t>(weights_.bytes()));
  return TakeResults();
}

Evaluation DeviceModel::Evaluate(const float* parameters, const Batch& batch, float* outputs) {
  const float* const weights = ParametersOnDevice(parameters);
  const DeviceBatch& staged = evaluation_stage_.Use(batch, run_stream());
  ResetResults(net_.classifies());
  const int64_t values = batch.rows * this->outputs();
  if (outputs != nullptr && outputs_.size() < values) {
    outputs_ = PinnedBuffer<float>(device_.runtime(), values, "outputs that are downloaded");
  }
  QueueAlone([&] {
    net_.Compute(weights, Read(evaluation_stage_, staged),
                 {&results_[0].loss, &results_[0].correct, outputs != nullptr ? outputs_.data() : nullptr});
  });
  evaluation_stage_.Used(run_stream());
  done_.Record(run_stream());
  done_.Wait();
  if (outputs != nullptr) std::copy_n(outputs_.data(), values, outputs);
  const StepResult result = TakeResults();
  Evaluation evaluation;
  evaluation.loss_sum = static_cast<double>(result.loss) * static_cast<double>(batch.rows);
  evaluation.correct = result.correct;
  evaluation.rows = batch.rows;
  evaluation.weight = static_cast<double>(batch.rows);
  evaluation.correct_weight = static_cast<double>(result.correct);
  evaluation.classifies = net_.classifies();
  return evaluation;
}

const float* DeviceModel::Freeze(const float* parameters) {
  if (!shared()) return parameters;
  gpu::cuda::Queue run(run_);
  const std::lock_guard order(run_->order());
  run.Copy(weights_.data(), parameters, weights_.bytes());
  return weights_.data();
}

void DeviceModel::Arrived(const float* parameters, Range elements) {
  announced_ = parameters;
  if (mirrored_ != parameters || shared()) return;  // the next step uploads everything
  uploads_.Copy(weights_.data() + elements.begin, parameters + elements.begin,
                elements.size() * static_cast<int64_t>(sizeof(float)));
}

// Returns the memory to which the device writes the gradient: its destination; or, if that cannot be pinned
// or is too small, staging_, from which End() copies it.
float* DeviceModel::DownloadTo(float* gradient) {
  wanted_ = nullptr;
  if (weights_.bytes() >= kMinToPin && pinned_->Pin(gradient, static_cast<size_t>(weights_.bytes()))) {
    return gradient;
  }
  if (staging_.data() == nullptr) {
    staging_ = PinnedBuffer<float>(device_.runtime(), layout_.size, "a gradient that is downloaded");
  }
  wanted_ = gradient;
  return staging_.data();
}

// Returns where the step will find the weights when its turn comes.
const float* DeviceModel::ParametersOnDevice(const float* parameters) {
  if (shared()) return parameters;
  if (mirrored_ != parameters || announced_ != parameters) UploadAll(parameters);
  uploaded_.Record(uploads_.stream());
  uploaded_.DelayStream(compute_.stream());
  return weights_.data();
}

void DeviceModel::UploadAll(const float* parameters) {
  // Those of other callers may be freed at any time.
  if (announced_ == parameters && weights_.bytes() >= kMinToPin)
    pinned_->Pin(parameters, static_cast<size_t>(weights_.bytes()));
  uploads_.Copy(weights_.data(), parameters, weights_.bytes());
  mirrored_ = parameters;
}

// The first part of a step's work: provides the rows for the first layer.
NetBatch DeviceModel::Read(BatchStage& stage, const DeviceBatch& batch) {
  stage.CopySmall(compute_);
  NetBatch read;
  read.rows = batch.rows;
  read.labels = batch.labels;
  read.targets = batch.targets;
  const int64_t columns = net_.layers().front().inputs;
  const gpu::MatrixView<float> gathered(inputs_.data(), batch.rows, columns);
  if (batch.rows == 0) {
    read.floats = gathered;
  } else if (batch.bytes.table.data != nullptr &&
             gpu::BytesAreFaster(stream_, batch.rows, net_.layers().front().outputs)) {
    read.as_bytes = true;
    read.bytes = batch.bytes;
  } else if (batch.bytes.table.data != nullptr) {
    gpu::GatherBytes(stream_, batch.bytes, gathered);
    read.floats = gathered;
  } else if (batch.row_numbers.data != nullptr) {
    gpu::GatherFloats(stream_, batch.floats, batch.row_numbers, gathered);
    read.floats = gathered;
  } else {
    read.floats = batch.floats;
  }
  return read;
}

// Queues the whole step, in compute_ and streams joined to it.
void DeviceModel::QueueStep(const float* parameters, const DeviceBatch& batch, float* gradient,
                            bool count_correct) {
  Results& results = results_[0];
  const NetResults wanted{&results.loss, count_correct ? &results.correct : nullptr};
  if (shared()) {
    net_.Compute(parameters, Read(stage_, batch), wanted, gradient);
    if (check_finite_) {
      gpu::CheckFinite(stream_, {gradient, layout_.size}, &results.non_finite);
    }
    return;
  }
  net_.Compute(parameters, Read(stage_, batch), wanted, gradient_.data(),
               [&](size_t layer) { DownloadLayer(layer, gradient); });
  downloaded_.Record(downloads_.stream());
  downloaded_.DelayStream(compute_.stream());
}

void DeviceModel::DownloadLayer(size_t layer, float* gradient) {
  layer_done_[layer].Record(compute_.stream());
  layer_done_[layer].DelayStream(downloads_.stream());
  const DenseLayer& parts = net_.layers()[layer];
  const auto download = [&](int64_t offset, int64_t size) {
    downloads_.Copy(gradient + offset, gradient_.data() + offset, size * static_cast<int64_t>(sizeof(float)));
  };
  download(parts.weights, parts.inputs * parts.outputs);
  download(parts.biases, parts.outputs);
}

// Runs work outside a graph: in compute_, after everything that is queued in the run's stream and before
// everything that will be.
void DeviceModel::QueueAlone(const std::function<void()>& work) {
  if (!shared()) return work();
  const std::lock_guard order(run_->order());  // no update of the weights in between
  Join(run_stream(), compute_.stream());
  work();
  Join(compute_.stream(), run_stream());
}

void DeviceModel::Join(StreamHandle before, StreamHandle after) {
  joined_.Record(before);
  joined_.DelayStream(after);
}

void DeviceModel::ResetResults(bool count_correct) {
  Results& results = results_[0];
  float pending_loss;
  std::memcpy(&pending_loss, &kPendingLoss, sizeof pending_loss);
  WriteOnce(&results.loss, pending_loss);
  WriteOnce(&results.correct, count_correct && net_.classifies() ? kPendingCount : 0);
  WriteOnce(&results.non_finite, shared() && check_finite_ ? kPendingCount : 0);
}

// Does not wait for the gradient itself: its readers work in the same stream.
void DeviceModel::AwaitResults() {
  const Results& results = results_[0];
  const auto pending = [&] {
    return Bits(ReadOnce(results.loss)) == kPendingLoss || ReadOnce(results.correct) == kPendingCount ||
           ReadOnce(results.non_finite) == kPendingCount;
  };
  const TimePoint until = Clock::now() + kPollTime;
  while (pending()) {
    if (Clock::now() >= until) return done_.Wait();
    device_.runtime().Relax();
  }
}

StepResult DeviceModel::TakeResults() const {
  const Results& results = results_[0];
  return {ReadOnce(results.loss), ReadOnce(results.correct), ReadOnce(results.non_finite) == 0};
}

}  // namespace dtrain
