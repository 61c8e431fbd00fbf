// ProgressiveLoss: the loss of rows before they are learned from, as a run goes on: each row is a test row
// until the model has seen it. It is told in a table as Vowpal Wabbit's, whose lines come each time the
// number of rows has doubled: 1, 2, 4, 8, ... It only counts and makes texts. Owner: who tells them, such as
// the leader. Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

// Sums over rows.
struct LossSums {
  int64_t rows = 0;
  double weight = 0;
  double loss = 0;  // weight times loss

  LossSums& operator+=(const LossSums& other) {
    rows += other.rows;
    weight += other.weight;
    loss += other.loss;
    return *this;
  }
  void Add(double row_loss, double row_weight = 1) { *this += {1, row_weight, row_weight * row_loss}; }
};

struct ProgressLine {
  int64_t rows = 0;
  double weight = 0;
  // Means by weight. Unset if the rows weigh nothing.
  std::optional<double> average;     // since the begin
  std::optional<double> since_last;  // of the rows since the last line
};

class ProgressiveLoss {
 public:
  explicit ProgressiveLoss(int workers = 1) : by_worker_(static_cast<size_t>(workers)) {}

  // Adds the sums of more rows of a worker.
  void Add(int worker, const LossSums& more) { by_worker_[static_cast<size_t>(worker)] += more; }
  // The sums of all rows of a worker since its begin, in place of those told before: a message that comes
  // twice counts once.
  void Set(int worker, const LossSums& all) { by_worker_[static_cast<size_t>(worker)] = all; }

  // Over all workers, in their order, so that the same parts give the same bits.
  LossSums Total() const;

  // Whether the number of rows has reached the next of 1, 2, 4, 8, ... behind the last line.
  bool IsDue() const { return Total().rows >= next_; }
  // Returns the line, and the next one is since here. Also if none is due, as at the end of a run.
  ProgressLine TakeLine();

 private:
  std::vector<LossSums> by_worker_;
  LossSums last_;  // at the last line
  int64_t next_ = 1;
};

// The two lines above the table, and a line of it, without line ends.
constexpr char kProgressHeader[] =
    "average  since         example        example\n"
    "loss     last          counter         weight";
std::string ProgressText(const ProgressLine& line);

}  // namespace dtrain
