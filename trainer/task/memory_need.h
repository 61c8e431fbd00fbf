// Memory: about how much a task will take, and how much this machine has, so that a task that cannot fit is
// refused before it takes any. Thread: any; free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/data_shape.h"
#include "trainer/model/layout.h"

namespace dtrain {

// How much memory this machine, or the control group that this process runs in, has at most.
struct MachineMemory {
  int64_t bytes = 0;   // 0: unknown
  std::string source;  // where that stands: "MemTotal of /proc/meminfo"
};

// The least of the physical memory and the limits of the process's control group and those above it, version
// 1 or 2. `root`: the directory that holds proc/ and sys/.
MachineMemory ReadMachineMemory(const std::string& root = "/");

// Three digits or more and a unit: "812 B", "7.7 GiB".
std::string BytesText(double bytes);

// MemoryNeed: about how many bytes a task will take, from the config and the data's size alone, so that one
// that cannot fit is refused before it takes any. Only what is large and certain counts: a little less than
// the truth.
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
