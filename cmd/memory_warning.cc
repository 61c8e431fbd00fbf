#include "cmd/memory_warning.h"

#include <fmt/core.h>

#include "base/console.h"
#include "trainer/task/memory_need.h"

namespace dtrain {

void WarnOfMemory(const Config& config, const Layout& layout) {
  const MachineMemory memory = ReadMachineMemory();
  const auto warn = [&](const MemoryNeed& need) {
    const std::string why = WhyTooLarge(need, memory);
    if (!why.empty()) StandardError().Write(fmt::format("dtrain: warning: {}\n", why));
    return !why.empty();
  };
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    if (warn(PsNeed(config, layout, static_cast<int>(ps)))) break;
  }
  warn(WorkerNeed(config, layout, EstimateDataSize(config), 0));  // no other needs more
}

}  // namespace dtrain
