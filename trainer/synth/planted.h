// What tables with a planted logistic model are drawn with: Zipf's law, weights, and the score of the truth.
// Draws are functions of random bits, in whole-number arithmetic, so that every machine makes the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dtrain {

// Returns a roughly normal value with mean 0 and deviation 1: the sum of four bytes of `bits`.
double SumOfBytes(uint32_t bits);

// Zipf's law by rejection (after Devroye, "Non-uniform random variate generation", 1986): the numbers from
// 2^j to 2^(j+1) - 1 are together about as likely for every j, so j is uniform; a number k of them is then
// uniform too and is kept with probability 2^j / k, which is at least a half.
class Zipf {
 public:
  static constexpr uint64_t kMaxValues = uint64_t{1} << 40;

  explicit Zipf(uint64_t values);
  // Returns k, 1 to `values`, with P(k) ~ 1/k.
  uint64_t Draw(uint64_t bits) const;

 private:
  uint64_t values_;  // at most kMaxValues
  uint32_t powers_ = 0;
};

// TrueScore: the log loss and the AUC of the true probabilities, from counts of rows by logit.
class TrueScore {
 public:
  void Add(double logit, bool positive);
  std::string Text() const;

 private:
  static constexpr size_t kCells = 1 << 16;
  static constexpr double kRange = 16;  // logits beyond are counted at its ends
  std::array<std::vector<int64_t>, 2> counts_{std::vector<int64_t>(kCells), std::vector<int64_t>(kCells)};
  double loss_ = 0;
  int64_t rows_ = 0, positives_ = 0;
};

}  // namespace dtrain
