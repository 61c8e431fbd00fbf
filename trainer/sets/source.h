// Data in batches, for training and for evaluation. The order is a function of (data.seed, epoch, local step,
// worker, number of workers) alone. Errors of the files are UserErrors with file, place, value and rule.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/batch/batch.h"
#include "trainer/batch/input_form.h"
#include "trainer/batch/sparse_rows.h"
#include "trainer/config/config.h"
#include "trainer/order/data_fingerprint.h"
#include "trainer/order/data_plan.h"
#include "trainer/order/window_order.h"

namespace dtrain {

class BatchSource;
struct SkippedRows;

// DataSet: one data set in memory (bytes for IDX, floats for CSV) or a generator. Implementations:
// data_set.h. Immutable once loaded, so that the threads of an in-process cluster share it. Thread: any.
class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual int64_t inputs() const = 0;
  virtual std::optional<int64_t> classes() const = 0;
  virtual std::optional<int64_t> rows() const = 0;  // unset: without end
  // Copies `count` rows in the order of `rows`: features to inputs[count, inputs()] as floats (IDX bytes /
  // 255; null: not wanted), and to `labels` if classes() is set, else to `targets`. The other one is not
  // touched and may be null.
  virtual void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
                      float* targets) const = 0;
  // Returns all rows [rows(), inputs()] if they are kept as bytes, which are the features times 255; else an
  // empty view.
  virtual gpu::MatrixView<const uint8_t> bytes() const { return {}; }
  // The same if they are kept as floats.
  virtual gpu::MatrixView<const float> floats() const { return {}; }
  // Whether batches have the features that are not 0 (Batch::sparse) in place of `inputs`. GatherSparse() has
  // them, in place of what is in `features`, and Gather() would write the others as 0.
  virtual bool sparse() const { return false; }
  virtual void GatherSparse(const int64_t* /*rows*/, int64_t /*count*/, SparseBuffer* /*features*/) const {}
  // Whether rows have weights of their own (data.weight); else all count 1, and Weights() is not called.
  virtual bool weighted() const { return false; }
  virtual void Weights(const int64_t* /*rows*/, int64_t /*count*/, float* /*weights*/) const {}
  // Returns the weights of classes, by number, which multiply those of rows in training and not in
  // evaluation (data.class_weights); empty: all count 1.
  virtual gpu::Span<const float> class_weights() const { return {nullptr, 0}; }
  // The blocks in which rows are read; null: all rows are in memory.
  virtual RowBlocks blocks() const { return nullptr; }
  // Soon these rows are gathered, and no others: reads them ahead, on a thread of its own.
  virtual void WillNeed(const std::vector<RowRun>&) const {}
  // The batches of rows that come once, and cannot be gathered; null: all can be.
  virtual std::unique_ptr<BatchSource> Stream(const Config&, int worker, int workers) const;
  // What is known of all rows without reading them again; unset: nothing.
  virtual std::optional<DataFingerprint> fingerprint() const { return std::nullopt; }
  // DataFingerprint::features of rows in memory, at the speed of the memory; 0: not known.
  virtual uint64_t Checksum() const;
  // How many rows each class has, up to the last that has any, where that is known without reading them;
  // null: it is not.
  virtual const std::vector<int64_t>* class_rows() const { return nullptr; }
};

// BatchSource: the batches of one worker, epoch by epoch, without the data.validation rows held out at the
// front. For a worker of several devices (device.ids) a batch holds train.batch_size rows for the first, as
// many for the second and so on; at the end of an epoch the last devices may have fewer rows, or none. Owner:
// the worker. Thread: one.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Returns the batch of the next local step; false when the worker's epochs are over. The batch is valid
  // until the next call of Next() or ReadAhead().
  virtual bool Next(Batch* batch) = 0;
  // Does the work of the next Next() now, while the caller would otherwise only wait. Has no other effect.
  virtual void ReadAhead() = 0;
  // The batch that ReadAhead() has read, valid as long as that of Next(); null if it has not.
  virtual const Batch* ahead() const { return nullptr; }
  // A wait of Next() calls this now and then, and ends when it returns false.
  virtual void Attend(std::function<bool()>) {}
  // From now on, batches of a set in memory (Batch::bytes, Batch::table) need not have `inputs`.
  virtual void LeaveOutInputs() {}
  // Adds the rows that were left out of what has been read since the data was loaded: those of a pipe.
  virtual void AddSkipped(SkippedRows*) const {}
  // Returns the nanoseconds that Next() waited for another task since the last call.
  virtual int64_t TakeWaitedNanos() { return 0; }
  // Makes the next batch that of `local_step` (from 0), for a worker that returns.
  virtual void Seek(int64_t local_step) = 0;
  // From now on, batches are those that `plan` has left; the next one is that of local step 0.
  virtual void Follow(const DataPlan& plan) = 0;
  virtual const DataPlan& plan() const = 0;
  virtual int64_t epoch() const = 0;              // of the last batch, from 0
  virtual int64_t batch_in_epoch() const = 0;     // of the last batch, from 0
  virtual int64_t batches_per_epoch() const = 0;  // of this worker in that epoch; 0: without end
};
std::unique_ptr<BatchSource> MakeBatchSource(const Config& config, std::shared_ptr<const DataSet> train,
                                             int worker, int workers);

// Returns the rows of the largest batch of one device in a run, of training or of an evaluation. `train_rows`
// are all of data.train; unset: without end. `test_rows` is 0 without data.test.
int64_t MaxBatchRows(const Config& config, std::optional<int64_t> train_rows, int64_t test_rows);

// Returns all rows of a set in order, in batches, for evaluation. `first` and `count` select a part.
std::unique_ptr<BatchSource> MakeSequentialSource(std::shared_ptr<const DataSet> set, int64_t first,
                                                  int64_t count, int64_t batch_size);

// Reads every label once, where it is not known already.
DataFingerprint FingerprintOf(const DataSet& train);

}  // namespace dtrain
