// What models on a device compute, beside the same on this processor. Built twice: with devices that this
// processor plays, and, as //trainer/model:device_steps_on_device, for those of a machine
// (scripts/gpu_check.sh).
#include <doctest/doctest.h>

#include "base/check.h"
#include "gpu/optimizer_ops.h"
#include "trainer/model/dense_model.h"
#include "trainer/model/device_model.h"
#include "trainer/model/model_test_util.h"

namespace dtrain {
namespace {

using gpu::cuda::Buffer;
using gpu::cuda::Device;
using gpu::cuda::DeviceInfo;
using gpu::cuda::Queue;
using gpu::cuda::Runtime;

// The first device of the program's runtime.
struct FirstGpu {
  std::vector<float> gradient;  // longer than the models that see it
  std::unique_ptr<Runtime> runtime = gpu::cuda::MakeRuntime();
  std::shared_ptr<Device> device = std::make_shared<Device>(*runtime, FirstOf(*runtime), 0.5, false);

  DeviceModel::Placement Here() { return {device, std::make_shared<gpu::cuda::PinnedRanges>(*runtime)}; }

 private:
  static DeviceInfo FirstOf(Runtime& runtime) {
    std::string why;
    const std::vector<DeviceInfo> devices = runtime.Devices(&why);
    DT_CHECK(!devices.empty(), why);
    return devices.front();
  }
};

TEST_CASE(
    "device steps: steps and evaluations are those of the processor, for every kind of model and data") {
  for (const DeviceProblem& problem : DeviceProblems()) {
    CAPTURE(static_cast<int>(problem.config.kind));
    FirstGpu gpu;
    DeviceModel model(problem.config, problem.layout, 12, gpu.Here());
    DenseModel expected(problem.config, problem.layout, 12);
    // Full batches, a short one and none; each kind of step comes often enough to be captured and repeated.
    std::vector<float> parameters = problem.parameters, gradient(parameters.size());
    for (int64_t turn = 0; turn < 5; ++turn) {
      for (const int64_t rows : {12, 12, 5, 0}) {
        for (const Batch& batch : {problem.Floats(turn, rows), problem.Bytes(turn, rows)}) {
          CAPTURE(turn);
          CAPTURE(rows);
          CheckSame(StepOf(model, parameters, batch, &gpu.gradient), StepOf(expected, parameters, batch));
          const Evaluation figures = model.Evaluate(parameters.data(), batch);
          const Evaluation same = expected.Evaluate(parameters.data(), batch);
          CHECK(figures.loss_sum == doctest::Approx(same.loss_sum).epsilon(kTolerance));
          CHECK(figures.correct == same.correct);
          CHECK(figures.rows == same.rows);
          CHECK(figures.classifies == same.classifies);
          parameters[static_cast<size_t>(turn)] += 0.25f;
        }
      }
    }
  }
}

constexpr float kRate = 0.1f;

gpu::Update UpdateOf(float* weights, const float* gradient, int64_t size) {
  gpu::Update update;
  update.weights = gpu::Span<const float>(weights, size);
  update.gradient = reinterpret_cast<const std::byte*>(gradient);
  update.updated = {weights, size};
  return update;
}

// Weights that stay on the device after `steps` batches of `batch(step)`, each followed by its update there.
template <typename BatchOf>
std::vector<float> TrainedOnDevice(const DeviceProblem& problem, int steps, const BatchOf& batch, bool keep) {
  FirstGpu gpu;
  Queue queue(*gpu.device);
  gpu::Stream stream(queue);
  const Buffer<float> weights(queue, problem.layout.size, "weights");
  const Buffer<float> gradient(queue, problem.layout.size, "gradient");
  queue.Copy(weights.data(), problem.parameters.data(), weights.bytes());
  DeviceModel model(problem.config, problem.layout, 12, {gpu.device, nullptr, queue.shared_stream(), true});
  if (keep) model.Keep({problem.bytes.data(), problem.rows, problem.columns}, {});
  for (int step = 0; step < steps; ++step) {
    model.Begin(weights.data(), batch(step), gradient.data(), true);
    model.Stage(batch(step + 1));
    CHECK(model.End().gradient_finite);
    gpu::SgdStep(stream, UpdateOf(weights.data(), gradient.data(), weights.size()), kRate);
  }
  std::vector<float> trained(static_cast<size_t>(weights.size()));
  queue.Copy(trained.data(), weights.data(), weights.bytes());
  return trained;
}

template <typename BatchOf>
std::vector<float> TrainedHere(const DeviceProblem& problem, int steps, const BatchOf& batch) {
  DenseModel model(problem.config, problem.layout, 12);
  gpu::Stream stream;
  std::vector<float> weights = problem.parameters, gradient(weights.size());
  for (int step = 0; step < steps; ++step) {
    Gradient(model, weights.data(), batch(step), gradient.data());
    gpu::SgdStep(stream, UpdateOf(weights.data(), gradient.data(), problem.layout.size), kRate);
  }
  return weights;
}

TEST_CASE("device steps: weights that stay on the device end where the processor's do, data kept or not") {
  constexpr int kSteps = 25;
  for (const DeviceProblem& problem : DeviceProblems()) {
    CAPTURE(static_cast<int>(problem.config.kind));
    const auto batch = [&](int step) {
      return problem.Bytes(step % 3, step % 5 == 4 ? 7 : 12, static_cast<uint64_t>(step) + 1);
    };
    const std::vector<float> expected = TrainedHere(problem, kSteps, batch);
    const std::vector<float> uploaded = TrainedOnDevice(problem, kSteps, batch, false);
    const std::vector<float> kept = TrainedOnDevice(problem, kSteps, batch, true);
    CHECK(LargestDifference(uploaded, expected) <= 10 * kTolerance);  // errors of 25 steps
    CHECK(kept == uploaded);
  }
}

}  // namespace
}  // namespace dtrain
