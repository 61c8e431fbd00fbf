// Compare: two functions under Google Benchmark in one run, NAME/dtrain and NAME/limit.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>

namespace dtrain::bench {

// What is timed, once a call.
using Timed = std::function<void()>;
// Makes the data of a Timed and the Timed itself: when it is measured, not before, since some are large.
using Prepare = std::function<Timed()>;

inline void RegisterTimed(const std::string& name, const Prepare& prepare) {
  benchmark::RegisterBenchmark(name.c_str(), [prepare](benchmark::State& state) {
    const Timed timed = prepare();
    timed();
    for (auto _ : state) timed();
  });
}

inline void Compare(const std::string& name, const Prepare& ours, const Prepare& limit) {
  RegisterTimed(name + "/dtrain", ours);
  RegisterTimed(name + "/limit", limit);
}

}  // namespace dtrain::bench
