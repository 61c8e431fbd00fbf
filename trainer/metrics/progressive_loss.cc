#include "trainer/metrics/progressive_loss.h"

#include <fmt/format.h>

#include <limits>

namespace dtrain {
namespace {

std::optional<double> Mean(double loss, double weight) {
  if (!(weight > 0)) return std::nullopt;
  return loss / weight;
}

std::string MeanText(std::optional<double> mean) { return mean ? fmt::format("{:.6f}", *mean) : "-"; }

}  // namespace

LossSums ProgressiveLoss::Total() const {
  LossSums total;
  for (const LossSums& sums : by_worker_) total += sums;
  return total;
}

ProgressLine ProgressiveLoss::TakeLine() {
  const LossSums total = Total();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  while (next_ <= total.rows && next_ < kMax) next_ = next_ > kMax / 2 ? kMax : 2 * next_;
  const ProgressLine line{total.rows, total.weight, Mean(total.loss, total.weight),
                          Mean(total.loss - last_.loss, total.weight - last_.weight)};
  last_ = total;
  return line;
}

std::string ProgressText(const ProgressLine& line) {
  return fmt::format("{:<8} {:<8} {:>12} {:>14.1f}", MeanText(line.average), MeanText(line.since_last),
                     line.rows, line.weight);
}

}  // namespace dtrain
