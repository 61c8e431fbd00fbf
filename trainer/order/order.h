// StepRows: which rows a worker's local step reads, of a finite set in epochs or of data without end: a
// function of (seed, epoch, worker, number of workers) alone.
//   shard, feed: each epoch has one permutation of all rows, cut into batches; worker w of n takes batches
//      w, w + n, ...
//   dynamic: of that permutation a worker takes the batches that are leased to it (lease.h).
//   full: each worker has a permutation of its own and takes every batch.
// Where rows are read from files in each epoch, turns are of chunks of batches (OrderSpec::chunk), and rows
// are shuffled in windows (window_order.h) of which a chunk is a part. A worker with d devices takes d of its
// batches, one after the other, as the batch of one step. In step, a worker whose batches of an epoch are
// taken has one more step without rows if others still have one. A BatchSource gathers the rows; where worker
// 0 feeds the others, it gathers them for each worker. Owner: a BatchSource, or a Feeder. Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gpu/view.h"
#include "trainer/config/choices.h"
#include "trainer/order/data_plan.h"
#include "trainer/order/lease.h"
#include "trainer/order/window_order.h"

namespace dtrain {

struct OrderSpec {
  int64_t first_row = 0;  // rows [first_row, first_row + rows) of the set
  int64_t rows = 0;
  int64_t batch_size = 1;   // of one device
  bool drop_short = false;  // drops an incomplete last batch
  bool shuffle = true;
  Split split = Split::kShard;
  uint64_t seed = 1;
  int worker = 0;
  int workers = 1;
  int64_t devices = 1;
  bool in_step = false;  // all workers have as many steps in an epoch (EndsInStep)
  int64_t window = 0;    // rows that are shuffled among each other; 0: all
  int64_t chunk = 1;     // batches of a turn; with split dynamic of a window
  RowBlocks blocks;      // with windows; null: of a thousand rows
  bool endless = false;  // there are rows without end, and no epochs
};

// Returns the rows of a window: data.shuffle_rows, at most 16 MiB of them unless they are sparse, in whole
// batches; 0: the rows are
// in memory, and all are shuffled among each other. model.inputs is set.
int64_t WindowRows(const Config& config);

// Whether the workers end each epoch in step: in sync, if a round waits for all of them. n workers with
// batches of b rows then compute what one would with batches of n * b, also if the batches do not divide by
// n. With split full the workers have equally many batches anyway.
bool EndsInStep(const Config& config);

// Returns the spec for a worker of `config`. `rows` are all of data.train; those held out are subtracted
// here.
OrderSpec OrderSpecOf(const Config& config, int64_t rows, int worker, int workers);

// Returns the batches of one device in one epoch: of all workers together for shard, feed and dynamic, of
// each worker for full.
int64_t BatchesPerEpoch(const OrderSpec& spec);

// Returns the global steps of a run: the first reached of train.steps and the epochs of all workers; unset if
// neither is known. `rows` are the training rows without those held out, unset if without end. In sync a step
// is a round, in which every worker computes one batch; with train.aggregate below the workers nobody knows
// how many rounds the epochs come to, since it depends on who is slow. With split dynamic the rounds are an
// estimate: at the end some workers find nothing to do. Every worker is assumed to have the
// config's number of devices. `plan`: what had been taken before.
std::optional<int64_t> TotalSteps(const Config& config, std::optional<int64_t> rows, int workers,
                                  const DataPlan& plan = {});
// The same for the config's workers and all `train_rows` of data.train, those held out among them.
std::optional<int64_t> StepsOfRun(const Config& config, std::optional<int64_t> train_rows,
                                  const DataPlan& plan);

// Permutations: the order of the rows in each epoch, computed once and shared by the orders of all workers
// whose batches one thread reads. A permutation lives as long as an order is at its epoch.
class Permutations {
 public:
  using Rows = std::shared_ptr<const std::vector<uint32_t>>;
  // `pause` is called now and then while a large permutation is computed; null: it is not.
  explicit Permutations(std::function<void()> pause = nullptr) : pause_(std::move(pause)) {}

  // Returns the permutation of [0, spec.rows) in `epoch`. The specs of the orders that share this object
  // differ only in the worker.
  Rows Of(const OrderSpec& spec, int64_t epoch);

 private:
  std::vector<uint32_t> Make(const OrderSpec& spec, int64_t epoch) const;

  const std::function<void()> pause_;
  std::map<int64_t, std::weak_ptr<const std::vector<uint32_t>>> made_;  // by epoch
};

// StepPlace: where a local step of a worker lies; all numbers count from 0.
struct StepPlace {
  int64_t epoch = 0;
  int64_t batch = 0;    // in the epoch, counting this worker's steps; with split dynamic in the lease
  int64_t batches = 0;  // the worker's steps in this epoch or lease; 0: an epoch without end, or no lease
};

class StepRows {
 public:
  // Is told the rows of the worker's window and the next one when it comes to a new one.
  using WillNeed = std::function<void(const std::vector<RowRun>& runs)>;

  // `rows` of data.train; unset: without end. `permutations` may be shared by several workers of one thread,
  // except with split full; null: the worker has its own. Throws UserError if some worker would have no
  // batch.
  StepRows(const Config& config, std::optional<int64_t> rows, int worker, int workers,
           std::shared_ptr<Permutations> permutations = nullptr, RowBlocks blocks = nullptr,
           WillNeed will_need = nullptr);
  // For `epochs` epochs; unset: without end.
  explicit StepRows(const OrderSpec& spec, std::optional<int64_t> epochs = std::nullopt,
                    std::shared_ptr<Permutations> permutations = nullptr, WillNeed will_need = nullptr);

  // Returns false if the worker's epochs are over before `local_step`, or no lease has it. `rows` is valid
  // until the next call. Leases that end before the step behind which it comes are forgotten.
  bool Read(int64_t local_step, gpu::Span<const int64_t>* rows);

  StepPlace PlaceOf(int64_t local_step) const;
  int64_t steps_per_epoch() const { return steps_; }  // of this worker in a whole epoch; may be 0
  // Returns the rows of this worker's batch `index` of `epoch`, which may be none in step; valid until the
  // next call. Only of data with an end, and not with split dynamic.
  gpu::Span<const int64_t> Rows(int64_t epoch, int64_t index);

  // Returns what `plan` leaves of this data, for sharing by the workers of one run. Throws Failure if the
  // plan is for other data. Thread: any.
  std::shared_ptr<const RemainingData> RemainingOf(const DataPlan& plan) const;
  // From now on covers what `remaining` has left; null: all data. No lease is known.
  void Follow(std::shared_ptr<const RemainingData> remaining);
  // With split dynamic: the steps from lease.step on are of this lease; what was known of them and of later
  // steps is forgotten. Throws Failure if the data have no such batches.
  void Take(const Lease& lease);

 private:
  gpu::Span<const int64_t> EndlessRows(int64_t local_step);
  const Lease* LeaseOf(int64_t local_step) const;
  bool ReadLeased(int64_t local_step, gpu::Span<const int64_t>* rows);
  const RemainingBatches* LeftOf(int64_t epoch) const;
  bool InTurn() const { return spec_.split == Split::kShard || spec_.split == Split::kFeed; }
  gpu::Span<const int64_t> Gather(int64_t epoch, int64_t begin, int64_t end, int64_t share);
  int64_t ShareOfEpoch(const RemainingBatches* left) const;
  int64_t StepsOfEpoch(const RemainingBatches* left) const;
  int64_t BatchAt(const RemainingBatches* left, int64_t batch) const;
  void Append(int64_t epoch, const RemainingBatches* left, int64_t batch);
  int64_t WindowOf(int64_t epoch, int64_t batch) const;
  std::optional<int64_t> WindowBehind(int64_t epoch, int64_t share) const;
  void AnnounceNext(int64_t epoch, int64_t batch, int64_t share);
  void Announce(std::optional<int64_t> next);

  const OrderSpec spec_;
  const std::optional<int64_t> epochs_;
  const std::shared_ptr<Permutations> permutations_;
  WillNeed will_need_;  // null: nobody asks
  const int64_t steps_;
  std::shared_ptr<const RemainingData> remaining_;  // null: nothing had been taken
  std::vector<int64_t> begins_{
      0};                      // the first local step of each epoch that had begun, and of the whole ones
  std::vector<Lease> leases_;  // in the order of their steps
  int64_t epoch_ = -1;         // the epoch of permutation_
  Permutations::Rows permutation_;      // null without shuffle and before the first use
  std::optional<WindowOrder> windows_;  // with spec_.window
  int64_t window_epoch_ = -1;           // where the last row was
  int64_t window_ = -1;
  std::vector<int64_t> batch_rows_;
};

}  // namespace dtrain
