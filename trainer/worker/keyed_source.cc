#include "trainer/worker/keyed_source.h"

#include <utility>

namespace dtrain {

KeyedSource::KeyedSource(std::unique_ptr<BatchSource> source, const TableLayout& table, int64_t ahead,
                         const BatchForm& form)
    : source_(std::move(source)),
      table_(table),
      ahead_(ahead),
      form_(form),
      current_(std::make_unique<KeyedBatch>()) {
  current_->Clear(table_);
}

// Reads the next batch; false: there is none.
bool KeyedSource::Read() {
  Batch batch;
  if (ended_ || !source_->Next(&batch)) {
    ended_ = true;
    return false;
  }
  Owned keyed;
  // The gradients of as many batches as may be asked for may not be sent yet, and need their keys.
  if (static_cast<int64_t>(free_.size()) <= ahead_) {
    keyed = std::make_unique<KeyedBatch>();
  } else {
    keyed = std::move(free_.front());
    free_.pop_front();
  }
  keyed->Fill(batch, table_, &sorter_, form_);
  keyed->epoch = source_->epoch();
  keyed->batch_in_epoch = source_->batch_in_epoch();
  keyed->batches_per_epoch = source_->batches_per_epoch();
  next_.push_back(std::move(keyed));
  return true;
}

bool KeyedSource::Next(Batch* batch) {
  if (next_.empty() && !Read()) return false;
  free_.push_back(std::exchange(current_, std::move(next_.front())));
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

void KeyedSource::DropAhead() {
  for (Owned& batch : next_) free_.push_back(std::move(batch));
  next_.clear();
  ended_ = false;
}

void KeyedSource::Seek(int64_t local_step) {
  DropAhead();
  source_->Seek(local_step);
}

void KeyedSource::Follow(const DataPlan& plan) {
  DropAhead();
  source_->Follow(plan);
}

}  // namespace dtrain
