// Estimates the memory that a task needs, to refuse a task that cannot fit before it takes any.
// Thread: any; free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/machine_memory.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {

// What is said of a sparse model's table: "123 features and the bias, 1 value each, 2 with the optimizer's
// slots; at most 992 B on all ps: rows take memory when they are first written".
std::string TableText(const Config& config, const TableLayout& table);
// The bytes of a ps's part of a table if all of its rows are written, with the optimizer's slots.
double MaxTableBytes(const Config& config, const TableLayout& table, int ps);

// The bytes of the replica that a ps holds of another one (failure.replicas), with the optimizer's slots; 0:
// it holds none. Of a table as MaxTableBytes() says.
double ReplicaBytes(const Config& config, const Layout& layout, int ps);

// MemoryNeed: roughly the bytes that a task needs, from the config and the size of the data alone. Only large
// and certain parts count, so it is slightly less than the truth.
struct MemoryPart {
  std::string what;    // "weights on ps"
  std::string remedy;  // "Use a smaller model", a sentence without its full stop
  double bytes = 0;
};

struct MemoryNeed {
  std::string who;  // "worker 0"
  std::vector<MemoryPart> parts;

  double bytes() const;
  const MemoryPart& largest() const;
};

// model.inputs and model.outputs must be set. A table counts as nothing, since rows that nobody touches take
// no memory.
MemoryNeed PsNeed(const Config& config, const Layout& layout, int ps);
MemoryNeed WorkerNeed(const Config& config, const Layout& layout, const DataSize& data, int worker);
// For the data alone.
MemoryNeed DataNeed(const DataSize& data, const std::string& who);
// For all tasks of `config` on one machine.
MemoryNeed ClusterNeed(const Config& config, const Layout& layout, const DataSize& data);

// "worker 0 needs about 62.8 GiB of memory, and this machine has 7.7 GiB (MemTotal of /proc/meminfo); most of
// it: gradients, 31.4 GiB. ..."; empty: it fits, or the machine's memory is unknown.
std::string WhyTooLarge(const MemoryNeed& need, const MachineMemory& memory);

// Throws UserError when `need` is more than this machine has.
void CheckFits(const MemoryNeed& need);

}  // namespace dtrain
