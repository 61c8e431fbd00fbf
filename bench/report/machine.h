// The machine in one line.
#pragma once

#include <string>

namespace dtrain::bench {

// "2 cores of AMD EPYC, AVX2, Linux 6.1.0, 8 GiB, load 0.10". The load is the caller's: it was read before
// anything that loads the machine was started.
std::string DescribeMachine(double load);
// Of the last minute, now.
double Load();

}  // namespace dtrain::bench
