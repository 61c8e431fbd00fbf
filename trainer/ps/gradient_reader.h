// GradientReader: makes a block of a gradient, as a worker has sent it, ready to be applied: checked, its
// values as float32, and the rows taken that it is of and asks for. Owner: PsServer, and the holder of a
// replica. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <string>

#include "net/codec.h"
#include "net/lent_buffer.h"
#include "trainer/config/cluster_config.h"
#include "trainer/ps/gradient_check.h"
#include "trainer/ps/task_table.h"
#include "trainer/ps/update_rule.h"
#include "trainer/shard/shard.h"

namespace dtrain {

class GradientReader {
 public:
  // The arguments outlive this.
  GradientReader(const Config& config, TaskId self, const Shard& shard, UpdateRule& rule)
      : config_(config), shard_(shard), rule_(rule), check_(config, self, shard, rule) {}

  // Returns why the gradient may not be applied; empty: `message` has float32 in the place of what came, and
  // behind them the keys, as they are. Throws what GradientCheck::CheckFinite() does.
  std::string Read(Member& member, uint64_t request, const wire::Push& push, net::Message* message);
  // The same of a record, which another ps has read.
  std::string ReadRecord(Member& member, const wire::Push& push, net::Message* message);
  // Takes the rows of a table that a message asks for. Returns what is wrong with them; empty: nothing.
  std::string TakeKeys(const Member& member, uint64_t request, const wire::Pull& pull,
                       const net::Message& message);
  std::string TakeKeys(const Member& member, uint64_t request, const wire::Push& push,
                       net::TensorView payload, uint64_t of = 0);

 private:
  std::string TakeRead(Member& member, uint64_t request, const wire::Push& push, const net::Message& message);
  bool Decompress(const Member& member, const wire::Push& push, net::Message* message);
  std::string TakeKeys(const Member& member, uint64_t request, int64_t block, net::TensorView keys,
                       uint32_t count, bool keeps, uint64_t of = 0);

  const Config& config_;
  const Shard& shard_;
  UpdateRule& rule_;
  const GradientCheck check_;
  net::LentBuffers decompressed_;  // gradients, until they are applied
};

}  // namespace dtrain
