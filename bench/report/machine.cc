#include "bench/report/machine.h"

#include <fmt/core.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <fstream>

namespace dtrain::bench {
namespace {

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(": ") + 2);
  }
  return "unknown processor";
}

const char* InstructionSet() {
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return "SSE4.2";
}

int Cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

double MemoryGib() {
  struct sysinfo about {};
  sysinfo(&about);
  return static_cast<double>(about.totalram) * about.mem_unit / (1 << 30);
}

}  // namespace

double Load() {
  double load = 0;
  getloadavg(&load, 1);
  return load;
}

std::string DescribeMachine(double load) {
  utsname kernel{};
  uname(&kernel);
  return fmt::format("{} cores of {}, {}, {} {}, {:.0f} GiB, load {:.2f}", Cores(), CpuModel(),
                     InstructionSet(), kernel.sysname, kernel.release, MemoryGib(), load);
}

}  // namespace dtrain::bench
