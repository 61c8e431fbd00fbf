// Data in batches, for training and for evaluation. The order is a function of (data.seed, epoch, local step,
// worker, number of workers) alone, or of leases. Errors of the files are UserErrors with file, place, value
// and rule.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/check.h"
#include "trainer/batch/batch.h"
#include "trainer/config/choices.h"
#include "trainer/order/data_plan.h"
#include "trainer/order/lease.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

struct SkippedRows;

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
  // With data.split: dynamic: the steps from lease.step on are of this lease; what was known of them and of
  // later steps is forgotten. Next() returns false at a step of no lease, and goes on once there is one. If
  // such steps were read ahead, Seek() must follow.
  virtual void Take(const Lease&) { DT_CHECK(false); }
  // From now on, batches are those that `plan` has left; the next one is that of local step 0. No lease is
  // known.
  virtual void Follow(const DataPlan& plan) = 0;
  virtual const DataPlan& plan() const = 0;
  virtual int64_t epoch() const = 0;              // of the last batch, from 0
  virtual int64_t batch_in_epoch() const = 0;     // of the last batch, from 0; or in its lease
  virtual int64_t batches_per_epoch() const = 0;  // of this worker in that epoch or lease; 0: without end
};
std::unique_ptr<BatchSource> MakeBatchSource(const Config& config, std::shared_ptr<const DataSet> train,
                                             int worker, int workers);

// Returns the rows of the largest batch of one device in a run, of training or of an evaluation. `train_rows`
// are all of data.train; unset: without end. `test_rows` is 0 without data.test.
int64_t MaxBatchRows(const Config& config, std::optional<int64_t> train_rows, int64_t test_rows);

// Returns all rows of a set in order, in batches, for evaluation. `first` and `count` select a part.
std::unique_ptr<BatchSource> MakeSequentialSource(std::shared_ptr<const DataSet> set, int64_t first,
                                                  int64_t count, int64_t batch_size);

}  // namespace dtrain
