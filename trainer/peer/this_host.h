// The machine that this process runs on, as other tasks are told.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

std::string HostName();     // "?" where it has none
std::string ProcessText();  // "host, pid 512"
// Tells machines apart, also where they have the same name: the name and the start of the kernel's boot id.
std::string HostId();

// Processors that this process may use; the largest number where nobody knows.
int64_t Processors();

}  // namespace dtrain
