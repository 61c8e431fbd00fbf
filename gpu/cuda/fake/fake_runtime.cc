// FakeRuntime: its devices, streams, events and graphs. fake_memory.cc and fake_work.cc have the rest.
#include "gpu/cuda/fake/fake_runtime.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <sstream>
#include <string>

#include "base/check.h"

namespace dtrain::gpu::cuda {

FakeRuntime::FakeRuntime(FakeOptions options)
    : options_(std::move(options)), last_work_(std::chrono::steady_clock::now()) {
  fail_after_.fill(-1);
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  for (const int number : VisibleDevices(visible, static_cast<int>(options_.names.size()))) {
    FakeDevice device;
    device.info.id = static_cast<int>(devices_.size());
    device.info.name = options_.names[static_cast<size_t>(number)];
    device.info.major = options_.major;
    device.info.pci = fmt::format("0000:{:02x}:00.0", number + 1);
    device.info.total_bytes = options_.bytes;
    device.info.multiprocessors = 4;
    devices_.push_back(std::move(device));
  }
  if (!devices_.empty()) return;
  why_ = visible == nullptr ? "no device in the machine"
                            : fmt::format("CUDA_VISIBLE_DEVICES is \"{}\"", visible);
}

FakeRuntime::~FakeRuntime() {
  const std::lock_guard lock(mutex_);
  const Running running(*this);
  queues_.RunAll();
  OpenAll();
  for (const FakeDevice& device : devices_) {
    if (device.arena != nullptr) device.arena->CheckGuards();
  }
  // An exception may have skipped the code that deletes the handles.
  if (std::uncaught_exceptions() == 0) DT_CHECK(LeaksLocked().empty(), LeaksLocked());
  for (const auto& [memory, pinned] : pinned_) {
    if (pinned.ours) std::free(reinterpret_cast<void*>(memory));
  }
}

void FakeRuntime::FailNext(FakeCall call, int after) {
  const std::lock_guard lock(mutex_);
  fail_after_[static_cast<size_t>(call)] = after;
}

bool FakeRuntime::Fails(FakeCall call) {
  int& after = fail_after_[static_cast<size_t>(call)];
  return after >= 0 && after-- == 0;
}

void FakeRuntime::ThrowIfFails(FakeCall call, StreamHandle stream) {
  if (!Fails(call)) return;
  const DeviceInfo& info = DeviceOf(stream).info;
  throw DeviceError(fmt::format("cuda {} ({}): a failure made by the test", info.id, info.name));
}

FakeCounts FakeRuntime::counts() const {
  const std::lock_guard lock(mutex_);
  FakeCounts counts = counts_;
  for (const FakeDevice& device : devices_) counts.contexts.push_back(device.contexts);
  return counts;
}

size_t FakeRuntime::queued() const {
  const std::lock_guard lock(mutex_);
  return queues_.queued();
}

std::string FakeRuntime::Leaks() const {
  const std::lock_guard lock(mutex_);
  return LeaksLocked();
}

std::vector<DeviceInfo> FakeRuntime::Devices(std::string* why) {
  const std::lock_guard lock(mutex_);
  std::vector<DeviceInfo> infos;
  for (const FakeDevice& device : devices_) infos.push_back(device.info);
  *why = why_;
  return infos;
}

std::string FakeRuntime::WhyNoBlas() { return options_.why_no_blas; }

std::string FakeRuntime::Versions() { return "fake CUDA runtime"; }

Arena& FakeRuntime::MakeContext(int device) {
  DT_CHECK(device >= 0 && device < static_cast<int>(devices_.size()), "no such device", device);
  FakeDevice& at = devices_[static_cast<size_t>(device)];
  if (at.arena == nullptr) {
    at.arena = std::make_unique<Arena>(static_cast<size_t>(options_.bytes));
    ++at.contexts;
    if (options_.on_context) options_.on_context(device);
  }
  return *at.arena;
}

FakeRuntime::FakeDevice& FakeRuntime::DeviceOf(StreamHandle stream) {
  return devices_[static_cast<size_t>(queues_.DeviceOf(stream))];
}

StreamHandle FakeRuntime::NewStream(int device) {
  const std::lock_guard lock(mutex_);
  MakeContext(device);
  if (Fails(FakeCall::kNewStream)) {
    throw DeviceError(fmt::format("cuda {}: a failure made by the test", device));
  }
  return queues_.NewStream(device);
}

void FakeRuntime::Delete(StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  queues_.Delete(stream);
}

void FakeRuntime::Wait(StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  queues_.RefuseInCapture(stream, "cudaStreamSynchronize");
  ThrowIfFails(FakeCall::kWait, stream);
  const Running running(*this);
  queues_.Run(stream);
}

EventHandle FakeRuntime::NewEvent(int device) {
  const std::lock_guard lock(mutex_);
  MakeContext(device);
  return queues_.NewEvent(device);
}

void FakeRuntime::Delete(EventHandle event) {
  const std::lock_guard lock(mutex_);
  queues_.Delete(event);
}

void FakeRuntime::Record(EventHandle event, StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  queues_.Record(event, stream);
}

void FakeRuntime::WaitFor(StreamHandle stream, EventHandle event) {
  const std::lock_guard lock(mutex_);
  queues_.WaitFor(stream, event);
}

void FakeRuntime::Wait(EventHandle event) {
  const std::lock_guard lock(mutex_);
  if (Fails(FakeCall::kWait)) throw DeviceError("cuda: a failure made by the test");
  const Running running(*this);
  queues_.Run(event);
}

bool FakeRuntime::Done(EventHandle event) {
  const std::lock_guard lock(mutex_);
  const Running running(*this);
  queues_.Step(event);
  return queues_.Done(event);
}

double FakeRuntime::Milliseconds(EventHandle begin, EventHandle end) {
  const std::lock_guard lock(mutex_);
  return queues_.Milliseconds(begin, end);
}

void FakeRuntime::Relax() {
  {
    const std::lock_guard lock(mutex_);
    if (queues_.queued() > 0) {
      const Running running(*this);
      queues_.Step();
      return;
    }
    DT_CHECK(std::chrono::steady_clock::now() < last_work_ + options_.idle,
             "a wait for what can never happen: nothing is queued");
  }
  std::this_thread::yield();
}

void FakeRuntime::BeginCapture(StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  queues_.BeginCapture(stream);
}

GraphHandle FakeRuntime::EndCapture(StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  try {
    ThrowIfFails(FakeCall::kEndCapture, stream);
  } catch (...) {
    queues_.AbortCapture(stream);
    throw;
  }
  return queues_.EndCapture(stream);
}

void FakeRuntime::AbortCapture(StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  queues_.AbortCapture(stream);
}

void FakeRuntime::Launch(StreamHandle stream, GraphHandle graph) {
  const std::lock_guard lock(mutex_);
  ThrowIfFails(FakeCall::kLaunchGraph, stream);
  ++counts_.graph_launches;
  queues_.Launch(stream, graph);
}

void FakeRuntime::Delete(GraphHandle graph) {
  const std::lock_guard lock(mutex_);
  queues_.Delete(graph);
}

namespace {

// Returns -1 if `word` is not a device number.
int NumberOf(const std::string& word) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (word.empty() || word.size() > 4 || !std::all_of(word.begin(), word.end(), is_digit)) return -1;
  return std::stoi(word);
}

}  // namespace

std::vector<int> VisibleDevices(const char* setting, int count) {
  std::vector<int> visible;
  if (setting == nullptr) {
    visible.resize(static_cast<size_t>(count));
    std::iota(visible.begin(), visible.end(), 0);
    return visible;
  }
  std::istringstream words(setting);
  for (std::string word; std::getline(words, word, ',');) {
    const int number = NumberOf(word);
    if (number < 0 || number >= count) break;
    if (std::find(visible.begin(), visible.end(), number) != visible.end()) return {};
    visible.push_back(number);
  }
  return visible;
}

}  // namespace dtrain::gpu::cuda
