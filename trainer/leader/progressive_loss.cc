#include "trainer/leader/progressive_loss.h"

#include <fmt/format.h>

#include <limits>

namespace dtrain {
namespace {

std::string MeanText(std::optional<double> mean) { return mean ? fmt::format("{:.6f}", *mean) : "-"; }

}  // namespace

std::optional<double> MeanOf(const LossSums& sums) {
  if (!(sums.weight > 0)) return std::nullopt;
  return sums.loss / sums.weight;
}

void ProgressiveLoss::BeginAt(const LossSums& total) {
  TakeLine(total);
  lines_ = 0;
}

ProgressLine ProgressiveLoss::TakeLine(const LossSums& total) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  rows_ = total.rows;
  while (next_ <= rows_ && next_ < kMax) next_ = next_ > kMax / 2 ? kMax : 2 * next_;
  const LossSums since{total.rows - last_.rows, total.weight - last_.weight, total.loss - last_.loss};
  last_ = total;
  ++lines_;
  return {total.rows, total.weight, MeanOf(total), MeanOf(since)};
}

void ProgressiveLoss::Log(const LossSums& total, Logger& log) {
  if (lines_ == 0) {
    for (const char* const line : kProgressHeader) log.Info("{}", line);
  }
  const ProgressLine line = TakeLine(total);
  const auto figure = [](std::optional<double> mean) {
    return mean ? LogField::Value(*mean) : LogField::Value();
  };
  log.Record(LogLevel::kInfo, ProgressText(line),
             {{"progressive_loss", figure(line.average)},
              {"progressive_loss_since_last", figure(line.since_last)},
              {"rows", line.rows},
              {"weight", line.weight}});
}

std::string ProgressText(const ProgressLine& line) {
  return fmt::format("{:<8} {:<8} {:>12} {:>14.1f}", MeanText(line.average), MeanText(line.since_last),
                     line.rows, line.weight);
}

}  // namespace dtrain
