// Dealt: what had been taken of the data before the workers of a run were numbered as they are now. A run
// that goes on from a checkpoint with another number of workers, or of devices, deals the batches that are
// left anew: epoch by epoch, those not taken, in their order, to worker 0, 1, ... in turn; then whole epochs
// as ever. Local steps count from 0 again. It holds who took how many steps, not which batches: those
// follow, and so it stays small however uneven the workers were. For split shard and feed, and data without
// end; full has no shares.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

// How batches divide among workers, and their batches among devices.

// Of numbers that are not negative.
inline int64_t DivideUp(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// How many of `batches`, dealt in turn, `worker` of `workers` gets.
inline int64_t ShareOf(int64_t batches, int64_t worker, int64_t workers) {
  return batches <= worker ? 0 : DivideUp(batches - worker, workers);
}

// What the workers of one numbering took.
struct Deal {
  int64_t devices = 1;               // of each worker
  std::vector<int64_t> local_steps;  // by worker
};

struct Dealt {
  int64_t epoch = 0;        // from 0: those before it are complete
  std::vector<Deal> deals;  // from that epoch on; each was dealt what those before it had left
  int64_t first_batch = 0;  // of data without end: none before it is given out any more
  int64_t other_steps = 0;  // that no worker's local step counts: of numberings and workers before. Less
                            // than 0 where workers of split full begin with a step that nobody took.
};
bool operator==(const Dealt& a, const Dealt& b);
inline bool operator!=(const Dealt& a, const Dealt& b) { return !(a == b); }

// One line. FromJson is for text from anywhere: false, and `dealt` untouched, where it is not such a line.
std::string ToJson(const Dealt& dealt);
bool FromJson(const std::string& text, Dealt* dealt);

// Of an epoch of `batches`, once `last` is dealt as well; complete epochs are left out. Unset where very many
// epochs have gaps.
std::optional<Dealt> DealAnew(const Dealt& before, const Deal& last, int64_t batches);

// The batches of one epoch that are left, in their order.
class LeftBatches {
 public:
  explicit LeftBatches(int64_t batches) { Add(0, batches); }

  int64_t count() const { return count_; }
  int64_t At(int64_t index) const;  // index < count()
  int64_t gaps() const { return static_cast<int64_t>(pieces_.size()); }
  // Takes out what the workers of `deal` took of them, and that out of the deal.
  void Take(Deal* deal);

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

// Rest: what a Dealt has left of each epoch that was begun. Immutable, hence shared by orders of one run.
class Rest {
 public:
  // Null where very many epochs have gaps: DealAnew() makes no such Dealt.
  static std::shared_ptr<const Rest> Of(const Dealt& dealt, int64_t batches);

  const Dealt& dealt() const { return dealt_; }
  // From dealt().epoch on; the epochs behind them are whole.
  const std::vector<LeftBatches>& begun() const { return begun_; }
  // Null where the epoch is whole.
  const LeftBatches* LeftOf(int64_t epoch) const;
  int64_t first_whole() const { return dealt_.epoch + static_cast<int64_t>(begun_.size()); }

 private:
  explicit Rest(const Dealt& dealt) : dealt_(dealt) {}

  const Dealt dealt_;
  std::vector<LeftBatches> begun_;
};

}  // namespace dtrain
