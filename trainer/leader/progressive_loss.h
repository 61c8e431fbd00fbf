// ProgressiveLoss: the loss of rows before they are learned from, as a run goes on: each row is a test row
// until the model has seen it. It is told in a table as Vowpal Wabbit's, whose lines come each time the
// number of rows has doubled: 1, 2, 4, 8, ... Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/log.h"
#include "trainer/result/losses.h"

namespace dtrain {

// The mean by weight. Unset if the rows weigh nothing.
std::optional<double> MeanOf(const LossSums& sums);

struct ProgressLine {
  int64_t rows = 0;
  double weight = 0;
  std::optional<double> average;     // since the begin
  std::optional<double> since_last;  // of the rows since the last line
};

class ProgressiveLoss {
 public:
  // The run goes on with `total`, for which there is no line.
  void BeginAt(const LossSums& total);

  // Counts more rows. Returns whether their number has reached the next of 1, 2, 4, 8, ... behind the last
  // line.
  bool Count(int64_t rows) {
    rows_ += rows;
    return rows_ >= next_;
  }
  int64_t rows_since_line() const { return rows_ - last_.rows; }
  int64_t lines() const { return lines_; }  // taken since the begin

  // Returns the line of `total`, and the next one is since here. Also if none is due, as at the end of a run.
  ProgressLine TakeLine(const LossSums& total);
  template <typename Archive>
  void State(Archive& archive) {
    archive(rows_, next_, lines_, last_);
  }
  // Logs that line, the first one below the header of the table.
  void Log(const LossSums& total, Logger& log);

 private:
  int64_t rows_ = 0;
  int64_t next_ = 1;
  int64_t lines_ = 0;
  LossSums last_;  // at the last line
};

// The two lines above the table, and a line of it.
constexpr const char* kProgressHeader[] = {"average  since         example        example",
                                           "loss     last          counter         weight"};
std::string ProgressText(const ProgressLine& line);

}  // namespace dtrain
