#include "trainer/worker/keyed_source.h"

#include <utility>

namespace dtrain {

namespace {

// The thread reads until so many batches are ready, and goes on when half of them are taken: it is woken once
// in a few steps.
constexpr size_t kMaxReady = 4;

}  // namespace

KeyedSource::KeyedSource(std::unique_ptr<BatchSource> source, const TableLayout& table, int64_t ahead,
                         const BatchForm& form, bool on_thread)
    : source_(std::move(source)),
      table_(table),
      ahead_(ahead),
      form_(form),
      current_(std::make_unique<KeyedBatch>()) {
  current_->Clear(table_);
  if (on_thread) thread_ = std::thread([this] { Run(); });
}

KeyedSource::~KeyedSource() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stops_ = true;
  }
  wanted_.notify_one();
  thread_.join();
}

// The gradients of as many batches as may be asked for may not be sent yet, and need their keys.
KeyedSource::Owned KeyedSource::Memory() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (static_cast<int64_t>(free_.size()) <= ahead_) return std::make_unique<KeyedBatch>();
  Owned memory = std::move(free_.front());
  free_.pop_front();
  return memory;
}

// Reads the next batch; null: there is none.
KeyedSource::Owned KeyedSource::Make() {
  Batch batch;
  if (!source_->Next(&batch)) return nullptr;
  Owned keyed = Memory();
  keyed->Fill(batch, table_, &sorter_, form_);
  keyed->epoch = source_->epoch();
  keyed->batch_in_epoch = source_->batch_in_epoch();
  keyed->batches_per_epoch = source_->batches_per_epoch();
  return keyed;
}

void KeyedSource::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wanted_.wait(lock, [&] { return stops_ || (wants_ && ready_.size() <= kMaxReady / 2); });
    while (!stops_ && wants_ && ready_.size() < kMaxReady) {
      reads_ = true;
      const std::deque<Lease> leases = std::exchange(leases_, {});
      lock.unlock();
      Owned batch;
      std::exception_ptr fault;
      try {
        for (const Lease& lease : leases) source_->Take(lease);
        batch = Make();
      } catch (...) {
        fault = std::current_exception();
      }
      lock.lock();
      reads_ = false;
      fault_ = fault;
      // Nobody is told that there is no more if a lease has come since.
      ended_ = batch == nullptr && fault == nullptr && leases_.empty();
      wants_ &= batch != nullptr || (fault == nullptr && !leases_.empty());
      if (batch != nullptr) ready_.push_back(std::move(batch));
      filled_.notify_one();
    }
    if (stops_) return;
  }
}

// Returns what the thread has read next; null: there is no more.
KeyedSource::Owned KeyedSource::TakeReady() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (ready_.empty() && !ended_ && fault_ == nullptr) {
    wants_ = true;
    wanted_.notify_one();
    filled_.wait(lock, [&] { return !ready_.empty() || ended_ || fault_ != nullptr; });
  }
  if (ready_.empty()) {
    if (fault_ != nullptr) std::rethrow_exception(fault_);
    return nullptr;
  }
  Owned batch = std::move(ready_.front());
  ready_.pop_front();
  if (ready_.size() == kMaxReady / 2) wanted_.notify_one();
  return batch;
}

// Reads the next batch; false: there is none.
bool KeyedSource::Read() {
  Owned batch;
  if (thread_.joinable()) {
    batch = TakeReady();
  } else if (!ended_) {
    batch = Make();
    ended_ = batch == nullptr;
  }
  if (batch == nullptr) return false;
  next_.push_back(std::move(batch));
  return true;
}

bool KeyedSource::Next(Batch* batch) {
  if (next_.empty() && !Read()) return false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::exchange(current_, std::move(next_.front())));
  }
  next_.pop_front();
  *batch = current_->batch();
  return true;
}

// One more than may be asked for: it will be when the next one is current.
void KeyedSource::ReadAhead() {
  if (static_cast<int64_t>(next_.size()) <= ahead_) Read();
}

KeyedBatch* KeyedSource::Ahead(int64_t steps) {
  while (static_cast<int64_t>(next_.size()) < steps) {
    if (!Read()) return nullptr;
  }
  return next_[static_cast<size_t>(steps - 1)].get();
}

// Forgets what was read ahead, and calls `then` while nobody reads.
void KeyedSource::DropAhead(const std::function<void()>& then) {
  std::unique_lock<std::mutex> lock(mutex_);
  wants_ = false;
  filled_.wait(lock, [&] { return !reads_; });
  for (std::deque<Owned>* const batches : {&next_, &ready_}) {
    for (Owned& batch : *batches) free_.push_back(std::move(batch));
    batches->clear();
  }
  ended_ = false;
  fault_ = nullptr;
  then();
}

void KeyedSource::Seek(int64_t local_step) {
  DropAhead([&] { source_->Seek(local_step); });
}

void KeyedSource::Take(const Lease& lease) {
  if (!thread_.joinable()) {
    source_->Take(lease);
    ended_ = false;
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  leases_.push_back(lease);
  wants_ |= std::exchange(ended_, false);
  wanted_.notify_one();
}

void KeyedSource::Follow(const DataPlan& plan) {
  DropAhead([&] {
    leases_.clear();
    source_->Follow(plan);
  });
}

}  // namespace dtrain
