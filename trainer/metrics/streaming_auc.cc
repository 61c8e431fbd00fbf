#include "trainer/metrics/streaming_auc.h"

#include <algorithm>
#include <cmath>

namespace dtrain {
namespace {

constexpr uint32_t kPerOne = 256, kLinear = 16 * kPerOne;  // buckets of logits 0 to 16
constexpr uint32_t kPowers = 12;                           // beyond: 16 to 32, ..., and all from 2^15 on
constexpr uint32_t kHalf = kLinear + kPowers;

// From 0, of a logit of at least 0.
uint32_t BucketOfPositive(float logit) {
  if (logit < 16) return static_cast<uint32_t>(logit * kPerOne);
  if (logit >= 32768) return kHalf - 1;
  return kLinear + static_cast<uint32_t>(std::ilogb(logit)) - 4;
}

}  // namespace

static_assert(StreamingAuc::kBuckets == 2 * kHalf);

uint32_t StreamingAuc::BucketOf(float logit) {
  return logit >= 0 ? kHalf + BucketOfPositive(logit) : kHalf - 1 - BucketOfPositive(-logit);
}

void StreamingAuc::Count(const Cell& from, Cell* to) {
  const bool is_first = to->positive == 0 && to->negative == 0;
  to->low = is_first ? from.low : std::min(to->low, from.low);
  to->high = is_first ? from.high : std::max(to->high, from.high);
  to->positive += from.positive;
  to->negative += from.negative;
}

void StreamingAuc::Add(float logit, bool positive, double weight) {
  if (weight == 0) return;
  if (std::isnan(logit)) {
    has_nan_ = true;
    return;
  }
  const uint32_t bucket = BucketOf(logit);
  Count({bucket, positive ? weight : 0, positive ? 0 : weight, logit, logit}, &cells_[bucket]);
}

bool StreamingAuc::Merge(const std::vector<Cell>& cells) {
  const auto is_possible = [](const Cell& cell) {
    return cell.positive >= 0 && cell.negative >= 0 && std::isfinite(cell.positive + cell.negative) &&
           cell.positive + cell.negative > 0 && cell.low <= cell.high && cell.bucket == BucketOf(cell.low) &&
           cell.bucket == BucketOf(cell.high);
  };
  if (!std::all_of(cells.begin(), cells.end(), is_possible)) return false;
  for (const Cell& cell : cells) Count(cell, &cells_[cell.bucket]);
  return true;
}

std::vector<StreamingAuc::Cell> StreamingAuc::Cells() const {
  std::vector<Cell> cells;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (cells_[bucket].positive == 0 && cells_[bucket].negative == 0) continue;
    cells.push_back(cells_[bucket]);
    cells.back().bucket = bucket;
  }
  return cells;
}

std::optional<StreamingAuc::Area> StreamingAuc::area() const {
  double below = 0, positives = 0;  // `below`: weight of the others in the buckets passed
  double won = 0, uncertain = 0;    // pairs
  for (const Cell& cell : cells_) {
    const double pairs = cell.positive * cell.negative;
    won += cell.positive * below + pairs / 2;
    if (cell.low != cell.high) uncertain += pairs / 2;
    below += cell.negative;
    positives += cell.positive;
  }
  const double all = positives * below;
  if (has_nan_ || !(all > 0) || !std::isfinite(all)) return std::nullopt;
  return Area{won / all, uncertain / all};
}

}  // namespace dtrain
