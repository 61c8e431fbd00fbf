// MemoryNeed: about how many bytes a task will take, from the config and the data's size alone, so that one
// that cannot fit is refused before it takes any. Only what is large and certain counts: a little less than
// the truth.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/data_shape.h"
#include "trainer/model/layout.h"
#include "trainer/task/machine_memory.h"

namespace dtrain {

struct MemoryPart {
  std::string what;    // "weights on ps"
  std::string remedy;  // "Use a smaller model", a sentence without its end
  double bytes = 0;
};

struct MemoryNeed {
  std::string who;  // "worker 0"
  std::vector<MemoryPart> parts;

  double bytes() const;
  const MemoryPart& largest() const;
};

// model.inputs and model.outputs must be set.
MemoryNeed PsNeed(const Config& config, const Layout& layout, int ps);
MemoryNeed WorkerNeed(const Config& config, const Layout& layout, const DataSize& data, int worker);
// Of the data alone.
MemoryNeed DataNeed(const DataSize& data, const std::string& who);
// The cluster of `config` on one machine.
MemoryNeed ClusterNeed(const Config& config, const Layout& layout, const DataSize& data);

// "worker 0 needs about 62.8 GiB of memory, and this machine has 7.7 GiB (MemTotal of /proc/meminfo); most of
// it: gradients, 31.4 GiB. ..."; empty where it fits, or nobody knows what the machine has.
std::string WhyTooLarge(const MemoryNeed& need, const MachineMemory& memory);

// UserError where `need` is more than this machine has.
void CheckFits(const MemoryNeed& need);

}  // namespace dtrain
