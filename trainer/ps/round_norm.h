// RoundNorm: what the mean gradient of a synchronous round is multiplied by, so that its norm over the whole
// model is at most train.optimizer.clip_norm. Each ps measures its own range; ps 0 adds the exact sums, so
// that the result does not depend on how many ps there are. A part is that of what its ps is going to apply.
// Thread: ps 0's loop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/optimizer_ops.h"
#include "net/codec.h"

namespace dtrain {

class RoundNorm {
 public:
  RoundNorm(size_t ps, double clip_norm) : clip_norm_(clip_norm), here_(ps) {}

  // ps 0's own part. From now on `round` is the one that parts are taken of.
  void Begin(uint64_t round, const gpu::SquareSum& own);
  // The part of another ps. Dropped where it is of another round, has come before, or has no such ps; such a
  // one comes again. Returns whether now all are here.
  bool Add(uint64_t round, int ps, const gpu::SquareSum& part);
  // Of the latest round of which all parts were here; unset for any other. No ps can ask for an older one: a
  // round needs a part of each.
  std::optional<double> Scale(uint64_t round) const;

 private:
  bool Complete();

  const double clip_norm_;
  uint64_t round_ = 0;      // that parts are taken of
  std::vector<bool> here_;  // by ps
  size_t missing_ = 0;
  gpu::SquareSum sum_;
  uint64_t complete_ = 0;  // the latest round of which all were here
  double scale_ = 1;       // of that
};

// The part that came with a ps's question; unset where there is none, or it is not one.
std::optional<gpu::SquareSum> SquaresIn(const wire::WaitEnd& question);

}  // namespace dtrain
