// GradientCheck: checks a block of a gradient before it is applied or held for its round.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <string>

#include "net/codec.h"
#include "trainer/config/cluster_config.h"
#include "trainer/ps/task_table.h"
#include "trainer/ps/update_rule.h"
#include "trainer/shard/shard.h"

namespace dtrain {

class GradientCheck {
 public:
  // The arguments outlive this.
  GradientCheck(const Config& config, TaskId self, const Shard& shard, const UpdateRule& rule)
      : config_(config), self_(self), shard_(shard), rule_(rule) {}

  // Why this block, as it has come, may not be applied; empty: it may.
  std::string WhyNot(const Member& member, const wire::Push& push, net::TensorView gradient) const;
  // The same of one that another ps has found to be right: its form and size.
  std::string WhyMalformed(const Member& member, const wire::Push& push, net::TensorView gradient) const;
  // Throws Failure when a value, which is a float32, is not finite (hooks.stop_on_nan).
  void CheckFinite(const Member& member, const wire::Push& push, const BlockGradient& gradient) const;

 private:
  // A gradient of no rows has none. An address is always there.
  bool HasValues(const wire::Push& push) const { return push.examples() > 0 || !shard_.reads_values(); }

  const Config& config_;
  const TaskId self_;
  const Shard& shard_;
  const UpdateRule& rule_;
};

}  // namespace dtrain
