// The area under the ROC curve, exactly: the part of all pairs of a row of the class and one of another of
// which the first has the larger score, a tie counting half (Mann and Whitney's U over its maximum; Hanley
// and McNeil, "The meaning and use of the area under a ROC curve", Radiology 143, 1982). Of several classes:
// the mean of each class against all others (Provost and Domingos, 2000), over the classes that some rows
// have and some have not.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "gpu/view.h"

namespace dtrain {

// One score for each row; `positive` tells of its label whether the row is of the class. Unset where all rows
// are of one kind. No score is NaN, and there are at most ScoreTable::kMostScores. Sorts: O(n log n).
std::optional<double> AreaUnderCurve(gpu::Span<const float> scores, gpu::Span<const int32_t> labels,
                                     int32_t positive);

// The scores of all rows of a set, kept until its end: 4 bytes for each class of each row. Of more than
// kMostClasses classes, or so many in all as the owner allows, nothing is kept and there is no area.
class ScoreTable {
 public:
  static constexpr int64_t kMostClasses = 64;
  static constexpr int64_t kMostScores = int64_t{1} << 27;  // 512 MiB
  // In a run all others wait for them to be sorted: about a second.
  static constexpr int64_t kMostScoresInRun = int64_t{1} << 22;

  // `outputs` of the model: 1 is the logit of class 1, more are logits of a softmax. `most_scores`: at most
  // kMostScores.
  explicit ScoreTable(int64_t outputs, int64_t most_scores = kMostScores);

  void Add(gpu::MatrixView<const float> outputs, gpu::Span<const int32_t> labels);
  // `breather` is called before each class of several is sorted; it may throw.
  std::optional<double> Area(const std::function<void()>& breather = [] {}) const;
  // Why there is none though there are rows; empty where there is.
  const char* why_none() const { return why_none_; }

 private:
  void KeepRow(const float* logits);
  void KeepNone(const char* why);

  const size_t outputs_;
  const int64_t most_scores_;
  const char* why_none_ = "";
  std::vector<std::vector<float>> scores_;  // by class: what ranks rows as the class's probability does
  std::vector<int32_t> labels_;
};

}  // namespace dtrain
