// RunPositions: how far the workers of a run were when it began, or went on from a checkpoint, and are now.
// Owner: Coordinator. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <string>

#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/data/positions.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/standings.h"

namespace dtrain {

class RunPositions {
 public:
  RunPositions(const Config& config, Membership& members, Standings& standings)
      : config_(config), members_(members), standings_(standings) {}

  // The run begins so at the global step `step`; the workers are there then.
  void Take(const Positions& positions, int64_t step);
  // Where the workers are, as JSON.
  std::string Now() const;

  int64_t first_step() const { return first_step_; }  // the global step that the run began at
  int64_t first_examples() const;                     // of the gradients up to that
  int64_t other_examples() const { return first_.other_examples; }
  // As JSON; empty: the data was never dealt anew.
  std::string DealtText() const { return first_.plan == DataPlan() ? "" : ToJson(first_.plan); }

 private:
  const Config& config_;
  Membership& members_;
  Standings& standings_;
  Positions first_;
  int64_t first_step_ = 0;
};

}  // namespace dtrain
