// DataPlan: which batches of the data a run has still to hand out when the local steps of its workers begin
// to count from 0. A run that goes on from a checkpoint with another number of workers, or of devices, makes
// a new plan: in each epoch that was begun the batches that nobody has taken go, in their order, to worker 0,
// 1, ... in turn; the epochs behind them are whole. A plan holds who took how many steps, not which batches:
// those follow from it, and so it stays small however uneven the workers were. Plans are for split shard and
// feed, and for data without end; with split full the workers share nothing. Thread: any; plain values and
// immutable classes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

// The quotient of two numbers that are not negative, rounded up.
inline int64_t DivideUp(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// How many of `batches`, dealt in turn, `worker` of `workers` gets.
inline int64_t ShareOf(int64_t batches, int64_t worker, int64_t workers) {
  return batches <= worker ? 0 : DivideUp(batches - worker, workers);
}

// TakenSteps: the steps that the workers of a run took while they were numbered in one way.
struct TakenSteps {
  int64_t devices = 1;               // of each worker
  std::vector<int64_t> local_steps;  // by worker
};

struct DataPlan {
  int64_t epoch = 0;  // from 0: those before it are complete
  std::vector<TakenSteps>
      taken;                // from that epoch on, oldest first; each took of what those before it had left
  int64_t first_batch = 0;  // of data without end: no batch before it is given out any more
  // Steps that no worker's local step counts: those of numberings and workers before. Less than 0 where
  // workers of split full begin with a step that nobody took.
  int64_t earlier_steps = 0;
};
bool operator==(const DataPlan& a, const DataPlan& b);
inline bool operator!=(const DataPlan& a, const DataPlan& b) { return !(a == b); }

// One line. FromJson is for text from anywhere: false, and `plan` untouched, where it is not such a line.
std::string ToJson(const DataPlan& plan);
bool FromJson(const std::string& text, DataPlan* plan);

// The plan of a run that followed `before` and goes on after its workers took `last`, with `batches` batches
// in an epoch; complete epochs are left out. Unset where very many epochs have gaps.
std::optional<DataPlan> Replan(const DataPlan& before, const TakenSteps& last, int64_t batches);

// RemainingBatches: the batches of one epoch that nobody has taken, in their order.
class RemainingBatches {
 public:
  explicit RemainingBatches(int64_t batches) { Add(0, batches); }

  int64_t count() const { return count_; }
  // The number in the epoch of the batch `index`, which is below count().
  int64_t At(int64_t index) const;
  // Runs of consecutive batches.
  int64_t gaps() const { return static_cast<int64_t>(pieces_.size()); }
  // Removes the batches that the workers took, and the steps that took them from `steps`.
  void Take(TakenSteps* steps);

 private:
  struct Piece {
    int64_t begin;   // of consecutive batches
    int64_t before;  // how many are left before it
  };

  void Add(int64_t begin, int64_t end);
  int64_t EndOf(size_t piece) const;

  std::vector<Piece> pieces_;
  int64_t count_ = 0;
};

// RemainingData: what a plan has left of each epoch that was begun. Immutable, hence shared by the orders of
// one run.
class RemainingData {
 public:
  // Null where very many epochs have gaps: Replan() makes no such plan. `batches`: of an epoch.
  static std::shared_ptr<const RemainingData> Of(const DataPlan& plan, int64_t batches);

  const DataPlan& plan() const { return plan_; }
  // From plan().epoch on; the epochs behind them are whole.
  const std::vector<RemainingBatches>& begun() const { return begun_; }
  // What is left of an epoch; null where it is whole.
  const RemainingBatches* OfEpoch(int64_t epoch) const;
  // The first epoch of which nothing was taken.
  int64_t first_whole() const { return plan_.epoch + static_cast<int64_t>(begun_.size()); }

 private:
  explicit RemainingData(const DataPlan& plan) : plan_(plan) {}

  const DataPlan plan_;
  std::vector<RemainingBatches> begun_;
};

}  // namespace dtrain
