// KeyedBatch and KeyedSource: batches whose features are numbered by the rows of a table that they touch,
// read so far ahead that the rows of a batch can be asked for before its step. Owner: the worker, or an
// evaluator. Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "trainer/data/source.h"
#include "trainer/model/table_layout.h"
#include "trainer/table/key_list.h"

namespace dtrain {

// KeyedBatch: a batch, the keys of its rows of the table, and their weights once they are here.
class KeyedBatch {
 public:
  // Copies a batch. Throws UserError if it has more features than can be numbered.
  void Fill(const Batch& batch, const TableLayout& table, KeySorter* sorter);
  // Makes it a batch of nothing.
  void Clear(const TableLayout& table);

  // Its `columns` are the keys, and its `sparse.places` say which of them a feature has.
  const Batch& batch() const { return batch_; }
  KeySpan keys() const { return keys_; }
  // Those in block `block` of all (TableLayout::RangeOf), and the number of the first among all keys.
  KeySpan KeysIn(int64_t block) const {
    const int64_t begin = FirstIn(block);
    return {keys_.data() + begin, FirstIn(block + 1) - begin};
  }
  int64_t FirstIn(int64_t block) const { return firsts_[static_cast<size_t>(block)]; }
  // [keys, width], to be written.
  float* weights() { return weights_.data(); }
  const float* weights() const { return weights_.data(); }
  // By block of all: the request that asked for its keys.
  uint64_t& RequestOf(int64_t block) { return requests_[static_cast<size_t>(block)]; }

  // Where the batch is in its source's data (BatchSource).
  int64_t epoch = 0;
  int64_t batch_in_epoch = 0;
  int64_t batches_per_epoch = 0;

 private:
  void CopyLabels(const Batch& batch);
  void Number(const Batch& batch, const TableLayout& table, KeySorter* sorter);
  void FindBlocks(const TableLayout& table);

  Batch batch_;
  std::vector<int64_t> offsets_;
  std::vector<uint32_t> places_;
  std::vector<float> values_;
  std::vector<int32_t> labels_;
  std::vector<float> targets_;
  std::vector<float> row_weights_;
  KeyList keys_;
  std::vector<int64_t> firsts_;  // by block, and behind the last
  std::vector<uint64_t> requests_;
  std::vector<float> weights_;
};

class KeyedSource : public BatchSource {
 public:
  // `table` outlives this. `ahead`: how many batches behind the one that Next() gave may be asked for.
  KeyedSource(std::unique_ptr<BatchSource> source, const TableLayout& table, int64_t ahead);

  bool Next(Batch* batch) override;
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
  void Follow(const DataPlan& plan) override;
  const DataPlan& plan() const override { return source_->plan(); }
  int64_t epoch() const override { return current_->epoch; }
  int64_t batch_in_epoch() const override { return current_->batch_in_epoch; }
  int64_t batches_per_epoch() const override { return current_->batches_per_epoch; }

 private:
  using Owned = std::unique_ptr<KeyedBatch>;
  bool Read();
  void DropAhead();

  const std::unique_ptr<BatchSource> source_;
  const TableLayout& table_;
  const int64_t ahead_;
  KeySorter sorter_;
  Owned current_;           // never null
  std::deque<Owned> next_;  // those behind it, in order
  std::deque<Owned> free_;  // their memory is kept; the oldest first
  bool ended_ = false;      // the source has no more
};

}  // namespace dtrain
