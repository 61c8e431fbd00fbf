// The machine in one line.
#pragma once

#include <string>

namespace dtrain::bench {

// "2 cores of AMD EPYC, AVX2, Linux 6.1.0, 8 GiB, load 0.10".
std::string DescribeMachine();

}  // namespace dtrain::bench
