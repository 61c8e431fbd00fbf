#include "trainer/ps/round_norm.h"

#include <algorithm>

#include "trainer/optim/optimizer.h"

namespace dtrain {

void RoundNorm::Begin(uint64_t round, const gpu::SquareSum& own) {
  round_ = round;
  here_.assign(here_.size(), false);
  here_[0] = true;
  missing_ = here_.size() - 1;
  sum_ = own;
  Complete();
}

bool RoundNorm::Complete() {
  if (missing_ > 0) return false;
  complete_ = round_;
  scale_ = ClipScale(sum_, clip_norm_);
  return true;
}

bool RoundNorm::Add(uint64_t round, int ps, const gpu::SquareSum& part) {
  const auto index = static_cast<size_t>(ps);
  if (round != round_ || index >= here_.size() || here_[index]) return false;
  here_[index] = true;
  gpu::AddSum(part, &sum_);
  --missing_;
  return Complete();
}

std::optional<double> RoundNorm::Scale(uint64_t round) const {
  if (round == 0 || round != complete_) return std::nullopt;
  return scale_;
}

std::optional<gpu::SquareSum> SquaresIn(const wire::WaitEnd& question) {
  gpu::SquareSum sum;
  const auto* words = question.squares();
  if (words == nullptr || words->size() != sum.words.size()) return std::nullopt;
  std::copy(words->begin(), words->end(), sum.words.begin());
  sum.finite = !question.infinite();
  return sum;
}

}  // namespace dtrain
