// FuzzTarget: a function that must survive any bytes. Each target is one file of this folder, and the same
// file is run by libFuzzer (libfuzzer.cc, by clang) and by rounds.cc, a test by any compiler. What a target
// may not do: end the process, throw anything but what it catches, or grow without bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace dtrain::fuzz {

struct Target {
  std::string name;  // "codec"; its corpus is in testdata/codec
  int (*one)(const uint8_t* data, size_t size);
};

// The targets that are linked in.
inline std::vector<Target>& Targets() {
  static std::vector<Target> targets;
  return targets;
}

// Each target's file has one of these, at namespace scope.
struct AddTarget {
  AddTarget(const char* name, int (*one)(const uint8_t*, size_t)) { Targets().push_back({name, one}); }
};

// How far the inputs came, so that a test finds seeds that do not get past the door: gradients that a ps has
// applied or that a worker has sent, batches that were fed. Targets without such leave it alone.
inline uint64_t& StepsReached() {
  static uint64_t steps = 0;
  return steps;
}

// Call this where a promise is broken. It ends the process, which is a finding.
inline void Require(bool kept, const std::string& promise) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", promise.c_str());
  std::abort();
}

}  // namespace dtrain::fuzz
