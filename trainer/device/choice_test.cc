#include "trainer/device/choice.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "gpu/cuda/fake/fake_runtime.h"
#include "trainer/config/train_config.h"

namespace dtrain {
namespace {

using gpu::cuda::FakeOptions;
using gpu::cuda::FakeRuntime;

DeviceConfig Kind(DeviceKind kind, std::vector<int64_t> ids = {0}) {
  DeviceConfig config;
  config.kind = kind;
  config.ids = std::move(ids);
  return config;
}

DeviceConfig OnlyCuda(std::vector<int64_t> ids = {0}) {
  DeviceConfig config = Kind(DeviceKind::kCuda, std::move(ids));
  config.soft_placement = false;
  return config;
}

FakeOptions Machine(std::vector<std::string> names, std::string why_no_blas = "") {
  FakeOptions options;
  options.names = std::move(names);
  options.why_no_blas = std::move(why_no_blas);
  return options;
}

// Checks too that no context is made.
DeviceChoice Choose(const DeviceConfig& config, const FakeOptions& machine) {
  FakeRuntime runtime(machine);
  DeviceChoice choice = ChooseDevices(config, runtime);
  for (const int contexts : runtime.counts().contexts) CHECK(contexts == 0);
  CHECK(choice.runtime == (choice.on_gpu() ? &runtime : nullptr));
  choice.runtime = nullptr;
  return choice;
}

const FakeOptions kTwo = Machine({"Left", "Right"});
const FakeOptions kNone = Machine({});
const FakeOptions kNoBlas = Machine({"Left", "Right"}, "libcublas.so.13: cannot open shared object file");

TEST_CASE("choice: auto takes the GPUs of device.ids, in their order") {
  const DeviceChoice choice = Choose(Kind(DeviceKind::kAuto, {1, 0}), kTwo);
  REQUIRE(choice.gpus.size() == 2);
  CHECK(choice.gpus[0].name == "Right");
  CHECK(choice.gpus[1].id == 0);
  CHECK(choice.why_cpu.empty());
  CHECK(DevicesName(choice) == "cuda:1,0");
  CHECK(DeviceName(Kind(DeviceKind::kAuto, {1, 0}), choice, 0) == "gpu:1");
}

TEST_CASE("choice: cuda takes the GPU too, whether or not it has to") {
  CHECK(DevicesName(Choose(Kind(DeviceKind::kCuda), kTwo)) == "cuda:0");
  CHECK(DevicesName(Choose(OnlyCuda({1}), kTwo)) == "cuda:1");
}

TEST_CASE("choice: cpu leaves GPUs alone and has no reason to give") {
  const DeviceChoice choice = Choose(Kind(DeviceKind::kCpu, {0, 9}), kTwo);
  CHECK_FALSE(choice.on_gpu());
  CHECK(choice.why_cpu.empty());
  CHECK(DevicesName(choice) == "cpu");
  CHECK(DeviceName(Kind(DeviceKind::kCpu, {0, 9}), choice, 1) == "cpu:9");
}

TEST_CASE("choice: auto without a GPU says why in a few words, and warns of nothing") {
  const DeviceChoice choice = Choose(Kind(DeviceKind::kAuto), kNone);
  CHECK_FALSE(choice.on_gpu());
  CHECK(choice.why_cpu == "no GPU: no device in the machine");
  CHECK_FALSE(choice.warn);
}

TEST_CASE("choice: auto warns where GPUs are there and not used") {
  const DeviceChoice missing = Choose(Kind(DeviceKind::kAuto, {0, 2, 7}), kTwo);
  CHECK_FALSE(missing.on_gpu());
  CHECK(missing.warn);
  CHECK(missing.why_cpu ==
        "device.ids = [0, 2, 7]; no GPU 2, 7: there are 0 (Left) and 1 (Right); computes on the processor. "
        "Set device.ids to GPUs that are there, or device.kind to cpu.");
  const DeviceChoice no_blas = Choose(Kind(DeviceKind::kAuto), kNoBlas);
  CHECK_FALSE(no_blas.on_gpu());
  CHECK(no_blas.warn);
  CHECK(no_blas.why_cpu ==
        "GPU 0 (Left) cannot be used without cuBLAS: libcublas.so.13: cannot open shared object file; "
        "computes on the processor. Install libcublas, or name its folder in LD_LIBRARY_PATH.");
}

TEST_CASE("choice: cuda with soft placement warns and computes on the processor") {
  const DeviceChoice none = Choose(Kind(DeviceKind::kCuda), kNone);
  CHECK_FALSE(none.on_gpu());
  CHECK(none.warn);
  CHECK(none.why_cpu ==
        "device.kind = cuda; no GPU: no device in the machine; computes on the processor. dtrain devices "
        "shows what this process may use.");
  CHECK(Choose(Kind(DeviceKind::kCuda, {1}), Machine({"Only"})).why_cpu ==
        "device.ids = [1]; no GPU 1: there is 0 (Only); computes on the processor. Set device.ids to GPUs "
        "that are there, or device.kind to cpu.");
  CHECK(Choose(Kind(DeviceKind::kCuda), kNoBlas).warn);
}

TEST_CASE(
    "choice: cuda without soft placement is refused where a GPU is missing or too old, or cuBLAS is "
    "missing") {
  const std::string instead = " device.soft_placement: true would compute on the processor instead.";
  const auto refused = [&](const DeviceConfig& config, const FakeOptions& machine, const std::string& why) {
    CHECK_THROWS_WITH_AS(Choose(config, machine), (why + instead).c_str(), UserError);
  };
  refused(OnlyCuda(), kNone,
          "device.kind = cuda; no GPU: no device in the machine. dtrain devices shows what this process may "
          "use.");
  refused(OnlyCuda({1, 7}), kTwo,
          "device.ids = [1, 7]; no GPU 7: there are 0 (Left) and 1 (Right). Set device.ids to GPUs that are "
          "there, or device.kind to cpu.");
  FakeOptions old = kTwo;
  old.major = 7;
  refused(
      OnlyCuda({1}), old,
      "device.kind = cuda; GPU 1 (Right) is of compute capability 7.0: 7.5 is the oldest that is supported. "
      "Set device.ids to newer GPUs, or device.kind to cpu.");
  refused(OnlyCuda({1}), kNoBlas,
          "device.kind = cuda; GPU 1 (Right) cannot be used without cuBLAS: libcublas.so.13: cannot open "
          "shared object file. Install libcublas, or name its folder in LD_LIBRARY_PATH.");
}

}  // namespace
}  // namespace dtrain
