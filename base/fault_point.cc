#include "base/fault_point.h"

namespace dtrain {

// Weak: base/testing/faults.cc takes its place in the programs that it is linked into.
__attribute__((weak)) void FaultPoint(const char*, const char*, const char*) {}

}  // namespace dtrain
