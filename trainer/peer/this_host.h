// The machine that this process runs on, as other tasks are told: its name, and what follows.
#pragma once

#include <cstdint>
#include <string>

#include "base/host_name.h"

namespace dtrain {

std::string ProcessText();  // "host, pid 512"
// Tells machines apart, also where they have the same name: the name and the start of the kernel's boot id.
std::string HostId();

// Processors that this process may use; the largest number where nobody knows.
int64_t Processors();

}  // namespace dtrain
