#include "gpu/cuda/fake/block_runner.h"

#include <fmt/core.h>
#include <cstring>

#include "base/check.h"

namespace dtrain::gpu::cuda {
namespace {

constexpr int kWarp = 32;
constexpr size_t kSharedBytes = size_t{48} << 10;  // what every device has for a block

std::string Where(BlockRunner::State state, int line) {
  switch (state) {
    case BlockRunner::State::kRunning:
      return "runs";
    case BlockRunner::State::kSync:
      return fmt::format("waits in Sync() of line {}", line);
    case BlockRunner::State::kShuffle:
      return fmt::format("waits in a shuffle of line {}", line);
    case BlockRunner::State::kEnded:
      break;
  }
  return "has ended";
}

}  // namespace

void BlockRunner::Run(int threads, const std::function<void(int)>& thread) {
  body_ = &thread;
  shared_.clear();
  while (static_cast<int>(threads_.size()) < threads) {
    threads_.push_back(std::make_unique<Thread>());
    threads_.back()->runner = this;
    threads_.back()->index = static_cast<int>(threads_.size()) - 1;
  }
  for (int i = 0; i < threads; ++i) threads_[i]->fiber.Start(&BlockRunner::Enter, threads_[i].get());
  Release(0, threads);
  for (;;) {
    forward_ = !forward_;
    const bool forward = forward_;
    for (int i = 0; i < threads; i += kWarp) RunWarp(forward ? i : threads - kWarp - i);
    CheckTogether(0, threads);
    if (threads_[0]->state == State::kEnded) return;
    Release(0, threads);
  }
}

void BlockRunner::Enter(void* thread) {
  auto* const self = static_cast<Thread*>(thread);
  (*self->runner->body_)(self->index);
  self->state = State::kEnded;
}

void BlockRunner::RunWarp(int first) {
  do {
    Release(first, kWarp);
    forward_ = !forward_;
    for (int i = 0; i < kWarp; ++i) threads_[first + (forward_ ? i : kWarp - 1 - i)]->fiber.Resume();
    CheckTogether(first, kWarp);
  } while (threads_[first]->state == State::kShuffle);
}

void BlockRunner::CheckTogether(int first, int count) const {
  const Thread& one = *threads_[first];
  for (int i = first + 1; i < first + count; ++i) {
    const Thread& other = *threads_[i];
    DT_CHECK(other.state == one.state && (one.state == State::kEnded || other.line == one.line),
             fmt::format("thread {} of a block {}, but thread {} {}", first, Where(one.state, one.line), i,
                         Where(other.state, other.line)));
  }
}

void BlockRunner::Release(int first, int count) {
  for (int i = first; i < first + count; ++i) threads_[i]->state = State::kRunning;
}

void BlockRunner::Wait(int index, State why, int line) {
  Thread& thread = *threads_[index];
  thread.state = why;
  thread.line = line;
  thread.fiber.Pause();
}

uint64_t BlockRunner::Exchange(int index, int from_lane, uint64_t value, int line) {
  DT_CHECK(from_lane >= 0 && from_lane < kWarp, "no lane of a warp", from_lane);
  Thread& thread = *threads_[index];
  const int turn = thread.turn;
  thread.turn = 1 - turn;
  thread.given[turn] = value;
  Wait(index, State::kShuffle, line);
  return threads_[index / kWarp * kWarp + from_lane]->given[turn];
}

void* BlockRunner::Shared(const void* key, size_t bytes, size_t alignment) {
  for (const SharedMemory& memory : shared_) {
    if (memory.key == key) return shared_bytes_.get() + memory.begin;
  }
  const size_t used = shared_.empty() ? 0 : shared_.back().begin + shared_.back().bytes;
  const size_t begin = (used + alignment - 1) / alignment * alignment;
  DT_CHECK(begin + bytes <= kSharedBytes, "too much shared memory", begin + bytes);
  if (shared_bytes_ == nullptr) shared_bytes_ = std::make_unique<char[]>(kSharedBytes);
  std::memset(shared_bytes_.get() + begin, 0xff, bytes);
  shared_.push_back({key, begin, bytes});
  return shared_bytes_.get() + begin;
}

}  // namespace dtrain::gpu::cuda
