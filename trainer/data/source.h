// Data as batches: what a worker trains on and what is evaluated.
// The order is a function of (data.seed, epoch, local step, worker, number of workers) alone.
// Errors of the files are UserErrors that name file, place, value and rule.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/batch.h"
#include "trainer/data/data_plan.h"
#include "trainer/data/files/input_form.h"

namespace dtrain {

// DataSet: one data set in memory (bytes for IDX, floats for CSV) or a generator. Implementations:
// data_set.h. Immutable once loaded, hence shared by threads of an in-process cluster.
class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual int64_t inputs() const = 0;
  virtual std::optional<int64_t> classes() const = 0;
  virtual std::optional<int64_t> rows() const = 0;  // unset: without end
  // Copies `count` rows, in the order of `rows`: features to inputs[count, inputs()] as floats (IDX bytes
  // / 255; null: not wanted), and a label or a target each: `labels` where classes() is set, else `targets`;
  // the other one is not touched and may be null.
  virtual void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
                      float* targets) const = 0;
  // All rows [rows(), inputs()] where they are kept as bytes, each a feature times 255; else empty.
  virtual gpu::MatrixView<const uint8_t> bytes() const { return {}; }
  // The same where they are kept as floats.
  virtual gpu::MatrixView<const float> floats() const { return {}; }
};

// BatchSource: the batches of one worker, epoch by epoch. data.validation rows at the front are held out. A
// worker of several devices (device.ids) gets those of all of them as one: train.batch_size rows for the
// first, as many for the second and so on; at an epoch's end the last ones may have fewer rows, or none.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Local step number -> batch; false when the worker's epochs are over. The batch stays valid until the
  // next call of Next() or ReadAhead().
  virtual bool Next(Batch* batch) = 0;
  // Does the next Next()'s work now, while the caller would only wait. Changes nothing else.
  virtual void ReadAhead() = 0;
  // What ReadAhead() has read, valid as long as what Next() returns; null where it has not.
  virtual const Batch* ahead() const { return nullptr; }
  // From now on a batch of a set in memory (Batch::bytes, Batch::table) need not have its `inputs`.
  virtual void LeaveOutInputs() {}
  // How long Next() waited for another task, in nanoseconds, since the last call of this.
  virtual int64_t TakeWaitedNanos() { return 0; }
  // The next batch is that of local step `local_step` (from 0): where a worker that comes back goes on.
  virtual void Seek(int64_t local_step) = 0;
  // From here on batches are those that `plan` has left, and the next one is that of local step 0.
  virtual void Follow(const DataPlan& plan) = 0;
  virtual const DataPlan& plan() const = 0;
  virtual int64_t epoch() const = 0;              // of the batch last returned, from 0
  virtual int64_t batch_in_epoch() const = 0;     // of the batch last returned, from 0
  virtual int64_t batches_per_epoch() const = 0;  // that this worker has of that epoch; 0: without end
};
std::unique_ptr<BatchSource> MakeBatchSource(const Config& config, std::shared_ptr<const DataSet> train,
                                             int worker, int workers);

// Rows of the largest batch that one device gets in a run: of training or of an evaluation. `train_rows` are
// all of data.train, unset: without end. `test_rows`: 0 without data.test.
int64_t MaxBatchRows(const Config& config, std::optional<int64_t> train_rows, int64_t test_rows);

// All rows of a set in order, in batches: for evaluation. `first`, `count`: a part of it.
std::unique_ptr<BatchSource> MakeSequentialSource(std::shared_ptr<const DataSet> set, int64_t first,
                                                  int64_t count, int64_t batch_size);

// DataFingerprint: by what two workers find out that they do not read the same training rows, in one order.
// Thread: any; plain values and free functions.
struct DataFingerprint {
  int64_t rows = 0;     // before the hold-out; 0: they have no end, or are not known
  uint32_t labels = 0;  // CRC-32 of all labels or targets in the rows' order

  bool operator==(const DataFingerprint& other) const { return rows == other.rows && labels == other.labels; }
  bool operator!=(const DataFingerprint& other) const { return !(*this == other); }
};

// Looks at every label once.
DataFingerprint FingerprintOf(const DataSet& train);

// What workers whose shares are of different rows train on, for a warning; empty: they are the same, or one
// of both is not known.
std::string OtherRowsText(const DataFingerprint& here, const DataFingerprint& chief);

}  // namespace dtrain
