// DataSet: the rows of data.train or data.test by number, wherever they are: columns of labels, weights and
// offsets, and a Fetch that has the rest of them. Errors of files are UserErrors with file, place, value and
// rule.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/view.h"
#include "trainer/batch/batch.h"
#include "trainer/batch/sparse_rows.h"
#include "trainer/config/choices.h"
#include "trainer/order/data_fingerprint.h"
#include "trainer/order/held_out_view.h"
#include "trainer/order/window_order.h"

namespace dtrain {

class BatchSource;
struct PassFacts;

// RowsOut: where rows are read to, [count] or [count, inputs] each; null: they are not wanted.
struct RowsOut {
  float* inputs = nullptr;         // of rows that are not sparse
  SparseBuffer* sparse = nullptr;  // of sparse rows; what is in it goes
  int32_t* labels = nullptr;
  float* targets = nullptr;
  float* weights = nullptr;
  float* row_offsets = nullptr;
};

// Fetch: reads rows by their numbers in the files, from 0. Implementations: rows in memory (memory_rows.h),
// mapped files (mapped_images.h, row_cache.cc), files that are parsed again (streamed_set.cc) and
// generators (generators.h). Owner: the DataSets that share it. Thread: any; immutable after Scale().
class Fetch {
 public:
  virtual ~Fetch() = default;
  // Labels, targets, weights and offsets are asked for where the set has no column of them, and nowhere else.
  virtual void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const = 0;
  // Soon these rows are read, and no others: reads them ahead, on a thread of its own.
  virtual void WillNeed(const std::vector<RowRun>& /*runs*/) const {}
  // All rows as they lie in memory; empty: they do not.
  virtual gpu::MatrixView<const uint8_t> bytes() const { return {}; }
  virtual gpu::MatrixView<const float> floats() const { return {}; }
  // DataFingerprint::features of rows in memory, in the order of the view (null: of the files), at the speed
  // of the memory; 0: not known.
  virtual uint64_t Checksum(const HeldOutView* /*view*/) const { return 0; }
  // Scales the rows where they lie. False: they cannot be changed, and are scaled when they are read.
  virtual bool Scale(const FittedScale& /*scale*/) { return false; }
};

// Calls `read` for each row, shortly before `find` for where it begins, and then `near` for what is there:
// these bring a row near to the processor. They must be inlined, because GCC takes a function that only
// prefetches for one without effects and leaves out its call.
template <typename Find, typename Near, typename ReadRow>
[[gnu::always_inline]] inline void ForEachAhead(gpu::Span<const int64_t> rows, Find find, Near near,
                                                ReadRow read) {
  constexpr int64_t kAheadOfOffset = 16, kAhead = 8;
  for (int64_t i = 0; i < rows.size; ++i) {
    if (i + kAheadOfOffset < rows.size) find(rows[i + kAheadOfOffset]);
    if (i + kAhead < rows.size) near(rows[i + kAhead]);
    read(rows[i]);
  }
}

// RowColumns: what rows have beside their features, in the order of the files. Empty: the Fetch has it, or
// there is none. `owner` keeps the memory; null: the Fetch does.
struct RowColumns {
  gpu::Span<const uint8_t> small_labels;  // or `labels`, or `targets`
  gpu::Span<const int32_t> labels;
  gpu::Span<const float> targets;
  gpu::Span<const float> weights;
  gpu::Span<const float> row_offsets;
  std::shared_ptr<const void> owner;
};
// Columns in memory of their own; all but those that are empty have a value for each row.
struct OwnColumns {
  std::vector<uint8_t> small_labels{};
  std::vector<int32_t> labels{};
  std::vector<float> targets{};
  std::vector<float> weights{};
  std::vector<float> row_offsets{};
};
RowColumns Keep(OwnColumns columns);

// SetForm: what is the same for all rows of a set. Plain data.
struct SetForm {
  int64_t inputs = 0;
  std::optional<int64_t> classes{};  // labels are in [0, classes); unset: rows have targets
  std::optional<int64_t> rows{};     // unset: without end
  bool sparse = false;               // the Fetch reads sparse rows
  bool weighted = false;             // rows have weights of their own (data.weight); else all count 1
  bool has_offsets = false;          // rows have offsets (data.offset)
  RowBlocks blocks{};                // in which rows are read; null: all rows are in memory
  // What is known of all rows without reading them again; null: nothing.
  std::shared_ptr<const PassFacts> facts{};
};

// Owner: LoadedData, shared. Thread: any; whoever loads the set calls what changes it, before others see it.
class DataSet {
 public:
  DataSet(SetForm form, std::shared_ptr<Fetch> fetch, RowColumns columns = {});

  int64_t inputs() const { return form_.inputs; }
  std::optional<int64_t> classes() const { return form_.classes; }
  std::optional<int64_t> rows() const { return form_.rows; }
  // Whether batches have the features that are not 0 (Batch::sparse) in place of `inputs`.
  bool sparse() const { return form_.sparse && !dense_; }
  bool weighted() const { return form_.weighted; }
  bool has_offsets() const { return form_.has_offsets; }
  // The weights of classes, by number, which multiply those of rows in training and not in evaluation
  // (data.class_weights); empty: all count 1.
  gpu::Span<const float> class_weights() const { return class_weights_; }
  // The blocks in which rows are read; null: all rows are in memory.
  const RowBlocks& blocks() const { return form_.blocks; }
  // All rows, by their numbers in the files (FileRows), [rows(), inputs()]: if they are kept as bytes, which
  // are the features times 255, or as floats; else an empty view.
  gpu::MatrixView<const uint8_t> bytes() const;
  gpu::MatrixView<const float> floats() const;
  // Null: nothing is known of all rows.
  const PassFacts* facts() const { return form_.facts.get(); }
  std::optional<DataFingerprint> fingerprint() const;
  // How many rows each class has, up to the last that has any, where that is known; else null.
  const std::vector<int64_t>* class_rows() const;
  const std::vector<int64_t>* held_out_class_rows() const;
  // The held-out rows that lie anywhere in the files; null: they are the first ones.
  const HeldOutView* view() const { return view_.get(); }
  // DataFingerprint::features, at the speed of the memory; 0: not known.
  uint64_t Checksum() const;

  // Returns the numbers that rows have in the files; `memory` keeps them, where they are not `rows`.
  gpu::Span<const int64_t> FileRows(gpu::Span<const int64_t> rows, std::vector<int64_t>* memory) const;
  // Reads rows by their numbers in the files: the features, where the set is sparse into `out.sparse` too (of
  // a dense set of sparse rows that is used as memory), the labels if classes() is set, else the targets, the
  // weights, only if weighted(), and the offsets, only if has_offsets(). What is not touched may be null.
  void Read(gpu::Span<const int64_t> file_rows, const RowsOut& out) const;
  // Soon these rows are read, and no others.
  void WillNeed(const std::vector<RowRun>& runs) const;

  // Makes the batches of rows that come once, and cannot be read by number; null: all can be. Can be called
  // once.
  using StreamOf = std::function<std::unique_ptr<BatchSource>(const Config&, int worker, int workers)>;
  const StreamOf& stream() const { return stream_; }

  // From now on the rows of `view` that are held out are the first ones. `class_rows`: those of each class
  // among them; empty: not known. `labels`: DataFingerprint::labels in this order, where facts are known.
  void HoldOut(std::shared_ptr<const HeldOutView> view, std::vector<int64_t> class_rows, uint32_t labels);
  // From now on rows are scaled.
  void UseScale(const FittedScale& scale);
  void UseClassWeights(std::vector<float> weights) { class_weights_ = std::move(weights); }
  // From now on batches have all features of a row.
  void MakeDense() { dense_ = true; }
  void UseStream(StreamOf stream) { stream_ = std::move(stream); }

 private:
  SetForm form_;
  std::shared_ptr<Fetch> fetch_;
  RowColumns columns_;
  std::shared_ptr<const HeldOutView> view_;
  std::vector<int64_t> held_out_class_rows_;
  FittedScale scale_;  // of rows that are scaled when they are read
  std::vector<float> class_weights_;
  bool dense_ = false;
  StreamOf stream_;
};

// RowChunk: rows of a set that follow each other. Valid until the next one.
struct RowChunk {
  int64_t count = 0;
  const float* inputs = nullptr;         // with `features`, and of a set that is not sparse
  const SparseBuffer* sparse = nullptr;  // of a sparse set
  const int32_t* labels = nullptr;       // without `features`: these, or targets
  const float* targets = nullptr;
  const float* weights = nullptr;  // without `features`, of a set that is weighted
};
// Calls `visit` with the rows [begin, end) of a set, in order: with their features, or with their labels.
void VisitRows(const DataSet& set, int64_t begin, int64_t end, bool features,
               const std::function<void(const RowChunk&)>& visit);

// Reads every label once, where it is not known already. A set that is not in memory has the features of its
// files, whatever is held out.
DataFingerprint FingerprintOf(const DataSet& train);

}  // namespace dtrain
