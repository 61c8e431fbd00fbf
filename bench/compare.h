// Compare: two functions under Google Benchmark in one run, NAME/dtrain and NAME/limit.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <string>

namespace dtrain::bench {

// Timed: what is timed, once per call.
using Timed = std::function<void()>;
// Prepare: makes the data of a Timed and the Timed itself. It runs when the case is measured and not before,
// because some data is large.
using Prepare = std::function<Timed()>;

// Registers one function. `bytes` read and written by one call are shown per second; 0: not shown.
inline void RegisterTimed(const std::string& name, const Prepare& prepare, int64_t bytes = 0) {
  benchmark::RegisterBenchmark(name.c_str(), [prepare, bytes](benchmark::State& state) {
    const Timed timed = prepare();
    timed();
    for (auto _ : state) timed();
    if (bytes > 0) state.SetBytesProcessed(state.iterations() * bytes);
  });
}

inline void Compare(const std::string& name, const Prepare& ours, const Prepare& limit, int64_t bytes = 0) {
  RegisterTimed(name + "/dtrain", ours, bytes);
  RegisterTimed(name + "/limit", limit, bytes);
}

}  // namespace dtrain::bench
