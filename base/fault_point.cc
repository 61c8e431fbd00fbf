#include "base/fault_point.h"

namespace dtrain {

// Weak: base/testing/faults.cc replaces it in the programs that link it.
__attribute__((weak)) void FaultPoint(const char*, const char*, const char*) {}

}  // namespace dtrain
