// KeyedBatch: a batch whose features are numbered by the rows of a table that it touches, the keys of these
// rows, and the parameters of its step once they are here: the model's flat vector, if it has one, and the
// weights of the rows. Owner: the worker, or an evaluator. Thread: one.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/batch/batch.h"
#include "trainer/model/table_layout.h"
#include "trainer/table/key_list.h"

namespace dtrain {

class KeyedBatch {
 public:
  // Copies a batch. Throws UserError if it has more features than can be numbered.
  void Fill(const Batch& batch, const TableLayout& table, KeySorter* sorter, const BatchForm& form = {});
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
  // [form.flat], and behind them [keys, width], to be written.
  float* parameters() { return parameters_.data(); }
  const float* parameters() const { return parameters_.data(); }
  // By block of all: the request that asked for its keys.
  uint64_t& RequestOf(int64_t block) { return requests_[static_cast<size_t>(block)]; }

  // Where the batch is in its source's data (BatchSource).
  int64_t epoch = 0;
  int64_t batch_in_epoch = 0;
  int64_t batches_per_epoch = 0;

 private:
  void CopyLabels(const Batch& batch);
  void CopyFeatures(const Batch& batch);
  void SplitFeatures(const Batch& batch, const BatchForm& form);
  void Number(const uint64_t* ids, const TableLayout& table, KeySorter* sorter);
  void FindBlocks(const TableLayout& table);

  Batch batch_;
  std::vector<int64_t> offsets_;
  std::vector<uint32_t> places_;
  std::vector<float> values_;
  std::vector<int32_t> labels_;
  std::vector<float> targets_;
  std::vector<float> row_weights_, row_offsets_;
  std::vector<uint64_t> ids_;      // features without those of numbers
  std::vector<float> numbers_;     // [rows, form.numbers.count]
  std::vector<uint32_t> columns_;  // of each feature
  KeyList keys_;
  std::vector<uint64_t> rows_;   // of a hash table: of each feature
  std::vector<int64_t> firsts_;  // by block, and behind the last
  std::vector<uint64_t> requests_;
  std::vector<float> parameters_;
};

}  // namespace dtrain
