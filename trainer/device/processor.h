// The processor that this process runs on, as users see it.
#pragma once

#include <string>

namespace dtrain {

std::string ProcessorName();  // "Intel(R) Xeon(R) Platinum 8481C"
// The best one that kernels here have a form for: "AVX-512".
const char* InstructionSet();

}  // namespace dtrain
