// KeyedSource: batches whose features are numbered by the rows of a table that they touch, read so far ahead
// that the rows of a batch can be asked for before its step. Where a processor is free a thread of its own
// reads and numbers them. Owner: the worker. Thread: one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "trainer/model/table_layout.h"
#include "trainer/sets/source.h"
#include "trainer/table/key_list.h"
#include "trainer/table/keyed_batch.h"

namespace dtrain {

class KeyedSource : public BatchSource {
 public:
  // `table` outlives this. `ahead`: how many batches behind the one that Next() gave may be asked for.
  // `on_thread`: a thread reads ahead; `source` is then one that waits for nobody, and calls no Attend().
  KeyedSource(std::unique_ptr<BatchSource> source, const TableLayout& table, int64_t ahead,
              const BatchForm& form = {}, bool on_thread = false);
  ~KeyedSource() override;

  bool Next(Batch* batch) override;
  // From now on numbers of rows are scaled so. Call it before batches are read, or before Seek().
  void UseScale(const FittedScale& scale) { form_.scale = scale; }
  // Reads one batch more, if there is room for it.
  void ReadAhead() override;
  // The batch of the last Next().
  KeyedBatch& current() { return *current_; }
  // The batch `steps` steps behind that, from 1 to `ahead`; valid until it is Next()'s and another one is.
  // Null: there are no more.
  KeyedBatch* Ahead(int64_t steps);

  void Attend(std::function<bool()> attend) override { source_->Attend(std::move(attend)); }
  void AddSkipped(SkippedRows* skipped) const override { source_->AddSkipped(skipped); }
  int64_t TakeWaitedNanos() override { return source_->TakeWaitedNanos(); }
  void Seek(int64_t local_step) override;
  void Take(const Lease& lease) override;
  void Follow(const DataPlan& plan) override;
  const DataPlan& plan() const override { return source_->plan(); }
  int64_t epoch() const override { return current_->epoch; }
  int64_t batch_in_epoch() const override { return current_->batch_in_epoch; }
  int64_t batches_per_epoch() const override { return current_->batches_per_epoch; }

 private:
  using Owned = std::unique_ptr<KeyedBatch>;
  bool Read();
  Owned Make();
  Owned TakeReady();
  Owned Memory();
  void Run();
  void DropAhead(const std::function<void()>& then);

  const std::unique_ptr<BatchSource> source_;
  const TableLayout& table_;
  const int64_t ahead_;
  BatchForm form_;
  KeySorter sorter_;
  Owned current_;           // never null
  std::deque<Owned> next_;  // those behind it, in order

  std::mutex mutex_;          // guards what follows
  std::deque<Owned> free_;    // their memory is kept; the oldest first
  std::deque<Owned> ready_;   // what the thread has read behind next_
  std::exception_ptr fault_;  // of what comes behind ready_
  std::deque<Lease> leases_;  // for the thread, which hands them to the source before it reads
  bool ended_ = false;        // the source has no more
  bool wants_ = false;        // the thread reads ahead
  bool reads_ = false;        // it is reading: source_ and sorter_ are its own
  bool stops_ = false;
  std::condition_variable filled_;  // one more is ready, or the thread has nothing to do
  std::condition_variable wanted_;
  std::thread thread_;
};

}  // namespace dtrain
