// Confusion: how often rows of each class were taken for each class, and the figures that follow from it
// (van Rijsbergen, "Information Retrieval", 1979, chapter 7): precision, the part of what was taken for a
// class that is of it; recall, the part of a class that was taken for it; F1, the harmonic mean of both. A
// figure whose denominator is 0 is unset.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace dtrain {

struct ClassFigures {
  int64_t support = 0;    // rows of the class
  int64_t predicted = 0;  // rows taken for it
  int64_t correct = 0;    // both
  std::optional<double> precision() const { return Part(correct, predicted); }
  std::optional<double> recall() const { return Part(correct, support); }
  std::optional<double> f1() const { return Part(2 * correct, support + predicted); }

 private:
  static std::optional<double> Part(int64_t of, int64_t all) {
    if (all == 0) return std::nullopt;
    return static_cast<double>(of) / static_cast<double>(all);
  }
};

class Confusion {
 public:
  // Of more classes only the sums are kept.
  static constexpr int64_t kMostInMatrix = 1000;

  explicit Confusion(int64_t classes)
      : figures_(static_cast<size_t>(classes)),
        matrix_(classes <= kMostInMatrix ? static_cast<size_t>(classes * classes) : 0) {}

  // Each in [0, classes).
  void Add(int32_t label, int32_t predicted) {
    ++figures_[static_cast<size_t>(label)].support;
    ++figures_[static_cast<size_t>(predicted)].predicted;
    if (label == predicted) ++figures_[static_cast<size_t>(label)].correct;
    if (has_matrix()) ++matrix_[Index(label, predicted)];
  }

  const std::vector<ClassFigures>& classes() const { return figures_; }
  bool has_matrix() const { return !matrix_.empty(); }
  int64_t at(int64_t label, int64_t predicted) const { return matrix_[Index(label, predicted)]; }

 private:
  size_t Index(int64_t label, int64_t predicted) const {
    return static_cast<size_t>(label) * figures_.size() + static_cast<size_t>(predicted);
  }

  std::vector<ClassFigures> figures_;
  std::vector<int64_t> matrix_;  // [label, predicted]
};

}  // namespace dtrain
