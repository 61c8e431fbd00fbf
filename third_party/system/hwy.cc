// What libhwy knows of this processor, and nothing else of it: loading libhwy measures the clock of the
// processor, which takes every process 3 ms. Thread: any.
#include <cpuid.h>
#include <hwy/targets.h>

#include <atomic>

namespace hwy {
namespace {

std::atomic<int64_t> of_test{0};  // 0: no test has set targets

// AVX2 stands for all of x86-64-v3. The builtins know too whether the kernel saves the registers.
int64_t Detect() {
  int64_t targets = HWY_ENABLED_BASELINE;
  unsigned a = 0, b = 0, c = 0, d = 0, extended = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  const bool lzcnt = __get_cpuid(0x80000001, &a, &b, &extended, &d) != 0 && (extended & bit_LZCNT) != 0;
  const bool v3 = f16c && lzcnt && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (!v3) return targets;
  targets |= HWY_AVX2;
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
  return v4 ? targets | HWY_AVX3 : targets;
}

}  // namespace

int64_t SupportedTargets() {
  static const int64_t detected = Detect();
  const int64_t set = of_test;
  return set != 0 ? set : detected;
}

void SetSupportedTargetsForTest(int64_t targets) { of_test = targets; }

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
