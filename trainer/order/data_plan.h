// DataPlan: which batches of the data are left for a run whose workers count their local steps from 0. A run
// that resumes with another number of workers or devices makes a new plan. In each epoch that had begun, the
// batches that no worker took go in order to worker 0, 1, ... in turn, one or a chunk of them; later epochs
// are whole. A plan holds
// how many steps each worker took, not which batches: these follow from it, so a plan stays small however
// uneven the workers were. With split dynamic, where batches are leased, it holds runs of batches. Plans are
// for split shard, feed and dynamic, and for data without end; with split full, workers share nothing.
// Thread: any; plain values and immutable classes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

// Returns a / b, rounded up; a and b are not negative.
inline int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Returns how many of `batches`, dealt in turn, `worker` of `workers` gets. A turn is of `chunk` batches that
// follow each other: those of rows that are cheap to read together.
inline int64_t ShareOf(int64_t batches, int64_t worker, int64_t workers, int64_t chunk = 1) {
  const int64_t turns = batches / chunk;  // whole ones
  const int64_t mine = turns <= worker ? 0 : CeilDiv(turns - worker, workers);
  return mine * chunk + (turns % workers == worker ? batches % chunk : 0);
}

// Returns the number, among the batches that are dealt, of batch `index` of a worker's share.
inline int64_t DealtBatch(int64_t index, int64_t worker, int64_t workers, int64_t chunk) {
  return (index / chunk * workers + worker) * chunk + index % chunk;
}

// Returns the steps of `worker` in an epoch of `batches`. `in_step`: all workers have as many as worker 0,
// which has the most batches; the last steps of the others may then have no rows.
inline int64_t StepsOf(int64_t batches, int64_t worker, int64_t workers, int64_t devices, bool in_step,
                       int64_t chunk = 1) {
  return CeilDiv(ShareOf(batches, in_step ? 0 : worker, workers, chunk), devices);
}

// A run of batches, numbered among those that were left of its epoch. It may go on in the epochs behind, each
// from its first batch that was left.
struct TakenRun {
  int64_t epoch = 0;
  int64_t first = 0;
  int64_t batches = 0;
};
inline bool operator==(const TakenRun& a, const TakenRun& b) {
  return a.epoch == b.epoch && a.first == b.first && a.batches == b.batches;
}

// TakenSteps: what workers took under one numbering of workers and devices, by steps or by runs.
struct TakenSteps {
  int64_t devices = 1;               // of each worker
  std::vector<int64_t> local_steps;  // by worker
  bool in_step = false;              // the workers ended their epochs in step
  int64_t chunk = 1;                 // batches of a turn
  std::vector<TakenRun> runs{};      // of split dynamic; then there are no local_steps
};

struct DataPlan {
  int64_t epoch = 0;  // from 0: those before it are complete
  std::vector<TakenSteps>
      taken;  // from that epoch on, oldest first; each numbering took from what those before it had left
  int64_t first_batch = 0;  // for data without end: all earlier batches count as taken
  // Steps that no worker's local step counts, because they belong to earlier numberings and workers. Negative
  // if workers of split full begin with a step that was not taken.
  int64_t earlier_steps = 0;
};
bool operator==(const DataPlan& a, const DataPlan& b);
inline bool operator!=(const DataPlan& a, const DataPlan& b) { return !(a == b); }

// Converts to and from one line of JSON. FromJson reads untrusted text: it returns false and leaves `plan`
// unchanged if the text is not valid.
std::string ToJson(const DataPlan& plan);
bool FromJson(const std::string& text, DataPlan* plan);

// Returns the plan of a run that continues after its workers took `last` under the plan `before`, with
// `batches` batches in an epoch. Complete epochs are left out. Unset if too many epochs have gaps.
std::optional<DataPlan> Replan(const DataPlan& before, const TakenSteps& last, int64_t batches);

// RemainingBatches: the batches of one epoch that no worker has taken, in order.
class RemainingBatches {
 public:
  explicit RemainingBatches(int64_t batches) { Add(0, batches); }

  int64_t count() const { return count_; }
  // Returns the number in the epoch of remaining batch `index`, which must be below count().
  int64_t At(int64_t index) const;
  // The number of runs of consecutive batches.
  int64_t gaps() const { return static_cast<int64_t>(pieces_.size()); }
  // Removes the batches that were taken of this epoch, and subtracts them from `steps`. Call it for the
  // epochs of a plan in their order.
  void Take(int64_t epoch, TakenSteps* steps);

 private:
  struct Piece {
    int64_t begin;   // of a run of consecutive batches
    int64_t before;  // how many remain before this run
  };

  void TakeRuns(int64_t epoch, std::vector<TakenRun>* runs);
  void Add(int64_t begin, int64_t end);
  // Adds the batches number [first, end) of those that `from` has left.
  void AddLeft(const RemainingBatches& from, int64_t first, int64_t end);
  int64_t EndOf(size_t piece) const;

  std::vector<Piece> pieces_;
  int64_t count_ = 0;
};

// RemainingData: what a plan has left of each epoch that had begun. Immutable, so the orders of one run share
// it.
class RemainingData {
 public:
  // Returns null if too many epochs have gaps; Replan() makes no such plan. `batches` is their number in an
  // epoch.
  static std::shared_ptr<const RemainingData> Of(const DataPlan& plan, int64_t batches);

  const DataPlan& plan() const { return plan_; }
  // The epochs that had begun, from plan().epoch on; later ones are whole.
  const std::vector<RemainingBatches>& begun() const { return begun_; }
  // Returns what is left of an epoch; null if the epoch is whole.
  const RemainingBatches* OfEpoch(int64_t epoch) const;
  // The first epoch from which nothing was taken.
  int64_t first_whole() const { return plan_.epoch + static_cast<int64_t>(begun_.size()); }

 private:
  explicit RemainingData(const DataPlan& plan) : plan_(plan) {}

  const DataPlan plan_;
  std::vector<RemainingBatches> begun_;
};

}  // namespace dtrain
