// Compare: two functions under Google Benchmark in one run, NAME/dtrain and NAME/limit.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <string>

namespace dtrain::bench {

// What is timed, once a call.
using Timed = std::function<void()>;
// Makes the data of a Timed and the Timed itself: when it is measured, not before, since some are large.
using Prepare = std::function<Timed()>;

// `bytes`: read and written by one call, to be shown per second; 0: not shown.
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
