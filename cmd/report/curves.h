// The curves of a run, from the event files of its summaries, thinned to what a picture can show. Thread:
// one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cmd/common/run_files.h"
#include "trainer/summary/event_reader.h"

namespace dtrain {

// Curve: one curve of one task. Of many points in a row it keeps the mean, the smallest and the largest.
class Curve {
 public:
  static constexpr size_t kMaxPoints = 200;

  struct Point {
    double step = 0;    // the mean, as `wall_s` and `mean` are
    double wall_s = 0;  // seconds since 1970
    double mean = 0;
    double min = 0;
    double max = 0;
    int64_t count = 0;
    int64_t last_step = 0;
  };

  // Adds a point; one that is not finite is left out. If a run has gone back to an earlier step, what was
  // beyond it is dropped: a curve has one value for each step.
  void Add(const CurvePoint& point);
  const std::vector<Point>& points() const { return points_; }
  double last() const { return last_; }  // the last value; there is one

 private:
  std::vector<Point> points_;
  int64_t in_a_row_ = 1;  // so many points become one
  double last_ = 0;
};

// Orders "worker 2" before "worker 10".
struct ByNumber {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
};
using CurvesByTask = std::map<std::string, Curve, ByNumber>;

struct RunCurves {
  std::map<std::string, CurvesByTask> by_tag;
  std::vector<std::string> problems;  // sentences on files that could not be read to their end

  // Returns the curves of a tag; none if no task wrote it.
  const CurvesByTask& Of(const std::string& tag) const;
};

// Reads the event files of a run's summaries (docs/summaries.md).
RunCurves ReadRunCurves(const RunFiles& run);

}  // namespace dtrain
