// The machine that this process runs on, as other tasks are told.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

std::string HostName();  // "?" where it has none

// Processors that this process may use; the largest number where nobody knows.
int64_t Processors();

}  // namespace dtrain
