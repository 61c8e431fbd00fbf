// StreamingAuc: the area under the ROC curve of rows without end, in memory that does not grow. A row is
// counted in the bucket of its logit, of the rows of class 1 or of the others, by its weight. Pairs of rows
// in different buckets are told apart exactly; those in one bucket count half, and so the area is wrong by at
// most half of their share:
//   error = sum over buckets of (weight of class 1) * (weight of others) / 2 / (pairs of weights)
// Buckets whose rows all have one logit are ties and add no error. A bucket is 1/256 wide up to logits of 16,
// where probabilities are within 1e-7 of 0 and 1, and each power of two wide beyond. The error is some 0.0005
// for logits that spread by 1.
// Sums are in double, in the order of the calls. Owner: who evaluates. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dtrain {

class StreamingAuc {
 public:
  // What a bucket has. Also how one process tells its rows to another.
  struct Cell {
    uint32_t bucket = 0;
    double positive = 0;      // weight of the rows of class 1
    double negative = 0;      // of the others
    float low = 0, high = 0;  // the range of their logits
  };
  struct Area {
    double value = 0;
    double error = 0;  // at most, but for rounding
  };
  static constexpr uint32_t kBuckets = 2 * (16 * 256 + 12);

  StreamingAuc() : cells_(kBuckets) {}

  // Adds a row. `weight` is at least 0 and finite.
  void Add(float logit, bool positive, double weight = 1);
  // Adds those of another. False, and nothing is added, if one is impossible: cells come from other
  // processes.
  bool Merge(const std::vector<Cell>& cells);
  // The buckets that have rows, in the order of logits.
  std::vector<Cell> Cells() const;

  // Unset if all rows are of one kind, or if a logit was not a number: it has no place in any order.
  std::optional<Area> area() const;
  bool has_nan() const { return has_nan_; }

  // Returns the bucket of a logit that is a number. Larger logits have the same bucket or one behind.
  static uint32_t BucketOf(float logit);

 private:
  static void Count(const Cell& from, Cell* to);

  std::vector<Cell> cells_;
  bool has_nan_ = false;
};

}  // namespace dtrain
