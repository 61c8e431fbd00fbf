#include <doctest/doctest.h>

#include <filesystem>
#include <memory>

#include "bench/gpu/gpu_cases.h"
#include "bench/report/process.h"
#include "gpu/cuda/fake/fake_runtime.h"

namespace dtrain::bench {
namespace {

// A directory as --bin wants it, with the dtrain whose devices are played.
void PutDtrain(const std::string& directory) {
  std::filesystem::create_directories(directory + "/cmd");
  std::filesystem::create_symlink(std::filesystem::absolute("cmd/dtrain_fake_gpu"),
                                  directory + "/cmd/dtrain");
}

TEST_CASE("gpu bench: every case runs and makes the rows that it names, with both sides") {
  const Scratch scratch;
  PutDtrain(scratch.path());
  GpuSettings settings;
  settings.smoke = true;
  settings.report.rounds = 1;
  settings.report.bin = scratch.path();
  settings.report.scratch = scratch.path();
  gpu::cuda::FakeRuntime runtime;
  Gpu gpu(runtime);
  const std::unique_ptr<PlainProducts> plain = MakePlainProducts(gpu);
  for (const Case& one : AllGpuCases(settings, gpu, *plain)) {
    REQUIRE(one.rows.size() == 1);
    CAPTURE(one.rows[0]);
    const std::vector<Row> rows = one.measure();
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].name == one.rows[0]);
    CHECK(rows[0].dtrain.size() == 1);
    CHECK(rows[0].limit.size() == 1);
    CHECK(rows[0].dtrain[0] > 0);
    CHECK(rows[0].Ratios()[0] > 0);
  }
}

TEST_CASE("gpu bench: a machine without a GPU is told so") {
  gpu::cuda::FakeOptions none;
  none.names = {};
  gpu::cuda::FakeRuntime runtime(none);
  CHECK_THROWS_WITH(Gpu{runtime}, "no GPU: no device in the machine");
}

}  // namespace
}  // namespace dtrain::bench
