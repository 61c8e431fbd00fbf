// BatchOrder: which rows make up a batch, a function of (seed, epoch, worker, number of workers) alone.
// shard and feed: one permutation of all rows per epoch, cut into batches, of which worker w of n takes w,
// w + n, ...
// full: each worker has a permutation of its own and takes every batch.
// A worker of d devices takes d of its batches at once, one after the other: they are one step's batch.
// Owner: a BatchSource. Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/random.h"
#include "gpu/view.h"
#include "trainer/config/config.h"
#include "trainer/data/data_plan.h"

namespace dtrain {

struct OrderSpec {
  int64_t first_row = 0;  // rows [first_row, first_row + rows) of the set
  int64_t rows = 0;
  int64_t batch_size = 1;   // of one device
  bool drop_short = false;  // the last batch, where it is not full
  bool shuffle = true;
  Split split = Split::kShard;
  uint64_t seed = 1;
  int worker = 0;
  int workers = 1;
  int64_t devices = 1;
};

// As `config` says. `rows` are all of data.train: those held out are left out here.
OrderSpec OrderSpecOf(const Config& config, int64_t rows, int worker, int workers);

// Batches of one device in one epoch, of all workers of `shard` or `feed` together or of each of `full`.
int64_t BatchesInAll(const OrderSpec& spec);

// Global steps of a run of `workers` workers on `rows` training rows (without those held out; unset: without
// end): the first reached of train.steps and the epochs of all workers; unset where nothing ends the run.
// In sync a step is a round, to which all workers are taken to give a batch.
// All workers are taken to have as many devices as `config` says. `plan`: what had been taken before.
std::optional<int64_t> TotalSteps(const Config& config, std::optional<int64_t> rows, int workers,
                                  const DataPlan& plan = {});

// Permutations: each epoch's order of the rows, made once for all the orders that share it: those of the
// workers whose batches one thread reads. A permutation lives as long as an order is at its epoch.
class Permutations {
 public:
  using Rows = std::shared_ptr<const std::vector<uint32_t>>;
  // `breather` runs now and then while a large permutation is made; null: nothing does.
  explicit Permutations(std::function<void()> breather = nullptr) : breather_(std::move(breather)) {}

  // The permutation of [0, spec.rows) in `epoch`. Orders that share this have the same spec, but for the
  // worker.
  Rows Of(const OrderSpec& spec, int64_t epoch);

 private:
  std::vector<uint32_t> Make(const OrderSpec& spec, int64_t epoch) const;

  const std::function<void()> breather_;
  std::map<int64_t, std::weak_ptr<const std::vector<uint32_t>>> made_;  // by epoch
};

// Where a local step of a worker lies, each from 0.
struct StepPlace {
  int64_t epoch = 0;
  int64_t batch = 0;    // of this worker in the epoch, one a step
  int64_t batches = 0;  // that it has of this epoch; 0: an epoch without end
};

class BatchOrder {
 public:
  // `permutations` is shared by several orders of one thread, not of split full; null: this one's own.
  explicit BatchOrder(const OrderSpec& spec, std::shared_ptr<Permutations> permutations = nullptr);

  // From here on for what `remaining` has left; null: for all data.
  void Follow(std::shared_ptr<const RemainingData> remaining);

  int64_t batches_per_epoch() const { return steps_; }  // of this worker in a whole one, one a step; may be 0
  StepPlace PlaceOf(int64_t local_step) const;
  // The rows of this worker's batch `index` of `epoch`, valid until the next call.
  gpu::Span<const int64_t> Rows(int64_t epoch, int64_t index);

 private:
  int64_t ShareOfEpoch(const RemainingBatches* left) const;
  void Append(const RemainingBatches* left, int64_t batch);

  const OrderSpec spec_;
  const std::shared_ptr<Permutations> permutations_;
  int64_t steps_ = 0;
  std::shared_ptr<const RemainingData> remaining_;  // null: nothing had been taken
  std::vector<int64_t> begun_;                      // first local steps of its begun epochs
  int64_t whole_from_ = 0;                          // the first local step of the epochs that are whole
  int64_t first_whole_ = 0;                         // and the first of those
  int64_t epoch_ = -1;                              // that permutation_ is of
  Permutations::Rows permutation_;  // of [0, rows); null without shuffle and before the first rows
  std::vector<int64_t> batch_rows_;
};

// StepRows: which rows a worker's local step reads, of a finite set in epochs or of one without end. A
// BatchSource gathers them; where worker 0 feeds the others, it does so for each of them. Owner: a
// BatchSource, or a Feeder. Thread: one.
class StepRows {
 public:
  // `rows` of data.train; unset: without end. `permutations` as for BatchOrder. UserError where some worker
  // would have no batch.
  StepRows(const Config& config, std::optional<int64_t> rows, int worker, int workers,
           std::shared_ptr<Permutations> permutations = nullptr);
  // As `spec` says, for so many epochs; unset: without end.
  StepRows(const OrderSpec& spec, std::optional<int64_t> epochs);

  // False when the worker's epochs are over before `local_step`. `rows` is valid until the next call.
  bool Read(int64_t local_step, gpu::Span<const int64_t>* rows);

  StepPlace PlaceOf(int64_t local_step) const;

  // What `plan` leaves of these data, to be shared by the workers of one run. Failure where it is not of
  // these data. Thread: any.
  std::shared_ptr<const RemainingData> RemainingOf(const DataPlan& plan) const;
  // From here on for what is left; null: for all data.
  void Follow(std::shared_ptr<const RemainingData> remaining);

 private:
  OrderSpec spec_;
  std::optional<int64_t> epochs_;
  std::optional<BatchOrder> order_;  // unset: a set without end
  int64_t first_batch_ = 0;          // of a set without end, as the one below
  std::vector<int64_t> rows_;
};

}  // namespace dtrain
