#include "trainer/device/processor.h"

#include <cpuid.h>

#include <cstring>

namespace dtrain {

// The processor's own name (CPUID leaves 0x80000002 to 4).
std::string ProcessorName() {
  unsigned words[12] = {};
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned* at = words + 4 * leaf;
    if (__get_cpuid(0x80000002u + leaf, at, at + 1, at + 2, at + 3) == 0) return "unknown processor";
  }
  char name[sizeof words + 1] = {};
  std::memcpy(name, words, sizeof words);
  std::string text(name);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

const char* InstructionSet() {
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return "SSE4.2";
}

}  // namespace dtrain
