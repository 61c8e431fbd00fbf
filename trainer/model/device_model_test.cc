#include "trainer/model/device_model.h"

#include <doctest/doctest.h>

#include <algorithm>

#include <functional>
#include <limits>

#include "gpu/cuda/fake/fake_runtime.h"
#include "trainer/model/dense_model.h"
#include "trainer/model/model_test_util.h"

namespace dtrain {
namespace {

using gpu::cuda::Buffer;
using gpu::cuda::Device;
using gpu::cuda::FakeRuntime;
using gpu::cuda::Queue;

struct FakeGpu {
  DeviceModel::Placement Here() { return {device, std::make_shared<gpu::cuda::PinnedRanges>(runtime)}; }

  std::string why;
  std::vector<float> gradient;
  FakeRuntime runtime;
  std::shared_ptr<Device> device =
      std::make_shared<Device>(runtime, runtime.Devices(&why).front(), 0.5, false);
};

TEST_CASE("device model: a step that comes again is one launch") {
  const DeviceProblem problem(ModelKind::kMlp, 20, {17}, 5, 40);
  FakeGpu gpu;
  DeviceModel model(problem.config, problem.layout, 12, gpu.Here());
  std::vector<float> gradient(problem.parameters.size());
  const auto step = [&] {
    Gradient(model, problem.parameters.data(), problem.Floats(0, 12), gradient.data());
  };
  for (int i = 0; i < 6; ++i) step();  // each slot twice: as it is, and captured
  const auto before = gpu.runtime.counts();
  for (int i = 0; i < 6; ++i) step();
  const auto after = gpu.runtime.counts();
  CHECK(after.graph_launches - before.graph_launches == 6);
  CHECK(after.launches == before.launches);
  CHECK(after.allocations == before.allocations);
}

TEST_CASE("device model: only weights that are said to be new are uploaded, and they are used") {
  const DeviceProblem problem(ModelKind::kSoftmax, 300, {}, 10, 40);
  FakeGpu gpu;
  DeviceModel model(problem.config, problem.layout, 12, gpu.Here());
  DenseModel expected(problem.config, problem.layout, 12);
  std::vector<float> parameters = problem.parameters;
  model.Arrived(parameters.data(), {0, problem.layout.size});
  StepOf(model, parameters, problem.Bytes(0, 12), &gpu.gradient);
  const int64_t before = gpu.runtime.counts().bytes_to_device;
  StepOf(model, parameters, problem.Bytes(0, 12), &gpu.gradient);
  const int64_t of_batch = gpu.runtime.counts().bytes_to_device - before;
  CHECK(of_batch < problem.layout.size * 4);
  std::fill(parameters.begin() + 100, parameters.begin() + 200, 0.125f);
  model.Arrived(parameters.data(), {100, 200});
  CheckSame(StepOf(model, parameters, problem.Bytes(0, 12), &gpu.gradient),
            StepOf(expected, parameters, problem.Bytes(0, 12)));
  CHECK(gpu.runtime.counts().bytes_to_device - before == 2 * of_batch + 400);
}

TEST_CASE("device model: an evaluation's outputs are those of the processor") {
  const DeviceProblem problem(ModelKind::kSoftmax, 31, {}, 10, 40);
  FakeGpu gpu;
  DeviceModel model(problem.config, problem.layout, 12, gpu.Here());
  DenseModel processor(problem.config, problem.layout, 12);
  const Batch batch = problem.Floats(0, 12);
  std::vector<float> outputs(static_cast<size_t>(12 * model.outputs())), expected(outputs.size());
  model.Evaluate(problem.parameters.data(), batch, outputs.data());
  const Evaluation counted = processor.Evaluate(problem.parameters.data(), batch, expected.data());
  for (size_t i = 0; i < outputs.size(); ++i)
    CHECK(outputs[i] == doctest::Approx(expected[i]).epsilon(kTolerance));
  int64_t correct = 0;  // what they are the outputs of
  for (int64_t row = 0; row < 12; ++row) {
    const float* const own = expected.data() + row * model.outputs();
    correct += std::max_element(own, own + model.outputs()) - own == batch.labels[row];
  }
  CHECK(correct == counted.correct);
}

TEST_CASE("device model: other parameters than those that are announced are uploaded whole") {
  const DeviceProblem problem(ModelKind::kSoftmax, 31, {}, 10, 40);
  FakeGpu gpu;
  DeviceModel model(problem.config, problem.layout, 12, gpu.Here());
  DenseModel expected(problem.config, problem.layout, 12);
  std::vector<float> parameters = problem.parameters, others = problem.parameters;
  others[3] += 1;
  const Batch batch = problem.Floats(0, 12);
  model.Arrived(parameters.data(), {0, problem.layout.size});
  CheckSame(StepOf(model, parameters, batch, &gpu.gradient), StepOf(expected, parameters, batch));
  CHECK(model.Evaluate(others.data(), batch).loss_sum ==
        doctest::Approx(expected.Evaluate(others.data(), batch).loss_sum).epsilon(kTolerance));
  CheckSame(StepOf(model, parameters, batch, &gpu.gradient), StepOf(expected, parameters, batch));
}

TEST_CASE("device model: a batch that was staged is uploaded once, and another one in its place is not it") {
  const DeviceProblem problem(ModelKind::kSoftmax, 2000, {}, 10, 40);  // not small
  FakeGpu gpu;
  DeviceModel model(problem.config, problem.layout, 12, gpu.Here());
  DenseModel expected(problem.config, problem.layout, 12);
  const std::vector<float>& parameters = problem.parameters;
  model.Arrived(parameters.data(), {0, problem.layout.size});
  StepOf(model, parameters, problem.Bytes(0, 12, 1), &gpu.gradient);
  model.Stage(problem.Bytes(3, 12, 2));
  model.Evaluate(parameters.data(), problem.Bytes(20, 12, 7));
  const int64_t before = gpu.runtime.counts().bytes_to_device;
  CheckSame(StepOf(model, parameters, problem.Bytes(3, 12, 2), &gpu.gradient),
            StepOf(expected, parameters, problem.Bytes(3, 12)));
  CHECK(gpu.runtime.counts().bytes_to_device == before);
  model.Stage(problem.Bytes(9, 12, 3));
  CheckSame(StepOf(model, parameters, problem.Bytes(5, 12, 4), &gpu.gradient),
            StepOf(expected, parameters, problem.Bytes(5, 12)));
}

TEST_CASE("device model: of a set that the device keeps only row numbers and labels travel") {
  for (const bool bytes : {true, false}) {
    for (const int64_t outputs : {10, 40}) {
      CAPTURE(bytes);
      CAPTURE(outputs);
      const DeviceProblem problem(ModelKind::kSoftmax, 300, {}, outputs, 40);
      FakeGpu gpu;
      DeviceModel model(problem.config, problem.layout, 12, gpu.Here());
      DenseModel expected(problem.config, problem.layout, 12);
      bytes ? model.Keep({problem.bytes.data(), 40, 300}, {})
            : model.Keep({}, {problem.floats.data(), 40, 300});
      model.Arrived(problem.parameters.data(), {0, problem.layout.size});
      StepOf(model, problem.parameters, bytes ? problem.Bytes(0, 12) : problem.Table(0, 12), &gpu.gradient);
      const int64_t before = gpu.runtime.counts().bytes_to_device;
      std::vector<float> memory;
      for (int64_t turn = 0; turn < 5; ++turn) {
        const Batch batch = bytes ? problem.Bytes(turn, 12) : problem.Table(turn, 12);
        const Batch plain = bytes ? batch : problem.Gathered(batch, &memory);
        CheckSame(StepOf(model, problem.parameters, batch, &gpu.gradient),
                  StepOf(expected, problem.parameters, plain));
      }
      CHECK(gpu.runtime.counts().bytes_to_device - before == 5 * (256 + 12 * 8));
    }
  }
}

TEST_CASE("device model: a set that does not fit is a user error, and batches go on travelling") {
  const DeviceProblem problem(ModelKind::kSoftmax, 300, {}, 10, 40);
  FakeGpu gpu;
  DeviceModel model(problem.config, problem.layout, 12, gpu.Here());
  CHECK_THROWS_AS(model.Keep({problem.bytes.data(), int64_t{1} << 30, 300}, {}), UserError);
  DenseModel expected(problem.config, problem.layout, 12);
  CheckSame(StepOf(model, problem.parameters, problem.Bytes(0, 12), &gpu.gradient),
            StepOf(expected, problem.parameters, problem.Bytes(0, 12)));
}

// Parameters and gradient in the device's memory, in a stream that others use too.
struct SharedParameters {
  SharedParameters(FakeGpu& gpu, const DeviceProblem& problem)
      : queue(*gpu.device),
        weights(queue, problem.layout.size, "weights"),
        gradient(queue, problem.layout.size, "gradient") {
    queue.Copy(weights.data(), problem.parameters.data(), weights.bytes());
  }
  Step StepOf(Model& model, const Batch& batch) {
    Step step;
    step.loss = Gradient(model, weights.data(), batch, gradient.data(), &step.correct);
    step.gradient.assign(static_cast<size_t>(gradient.size()), NAN);
    queue.Copy(step.gradient.data(), gradient.data(), gradient.bytes());
    return step;
  }
  Queue queue;
  Buffer<float> weights, gradient;
};

TEST_CASE("device model: parameters that lie on the device are read there, and nothing of them travels") {
  for (const DeviceProblem& problem : DeviceProblems()) {
    CAPTURE(static_cast<int>(problem.config.kind));
    FakeGpu gpu;
    SharedParameters shared(gpu, problem);
    DeviceModel model(problem.config, problem.layout, 12,
                      {gpu.device, nullptr, shared.queue.shared_stream(), true});
    DenseModel expected(problem.config, problem.layout, 12);
    int64_t travelled = 0;
    for (int64_t turn = 0; turn < 6; ++turn) {
      const int64_t before = gpu.runtime.counts().bytes_from_device;
      CheckSame(shared.StepOf(model, problem.Floats(turn, 12)),
                StepOf(expected, problem.parameters, problem.Floats(turn, 12)));
      travelled = gpu.runtime.counts().bytes_from_device - before;
    }
    CHECK(travelled == shared.gradient.bytes());  // which this test asked for
    const Evaluation figures = model.Evaluate(shared.weights.data(), problem.Floats(0, 12));
    CHECK(figures.loss_sum ==
          doctest::Approx(expected.Evaluate(problem.parameters.data(), problem.Floats(0, 12)).loss_sum)
              .epsilon(kTolerance));
  }
}

TEST_CASE("device model: a gradient on the device that is not finite is found") {
  const DeviceProblem problem(ModelKind::kLinear, 5, {}, 1, 40);
  FakeGpu gpu;
  SharedParameters shared(gpu, problem);
  DeviceModel model(problem.config, problem.layout, 12,
                    {gpu.device, nullptr, shared.queue.shared_stream(), true});
  model.Begin(shared.weights.data(), problem.Floats(0, 12), shared.gradient.data(), false);
  CHECK(model.End().gradient_finite);
  std::vector<float> features = problem.floats;
  features[7] = std::numeric_limits<float>::infinity();
  Batch batch = problem.Floats(0, 12);
  batch.inputs = features.data();
  model.Begin(shared.weights.data(), batch, shared.gradient.data(), false);
  CHECK_FALSE(model.End().gradient_finite);
}

TEST_CASE("device model: a fault of the device ends the step with its error") {
  const DeviceProblem problem(ModelKind::kSoftmax, 31, {}, 10, 40);
  FakeGpu gpu;
  DeviceModel model(problem.config, problem.layout, 12, gpu.Here());
  gpu.runtime.FailNext(gpu::cuda::FakeCall::kLaunch);
  CHECK_THROWS_AS(StepOf(model, problem.parameters, problem.Bytes(0, 12), &gpu.gradient),
                  gpu::cuda::DeviceError);
}

TEST_CASE(
    "device model: large gradients are downloaded to where they are wanted, or past it where that fails") {
  const DeviceProblem problem(ModelKind::kSoftmax, 27000, {}, 10, 14);  // above 1 MiB
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    FakeGpu gpu;
    if (fails) gpu.runtime.FailNext(gpu::cuda::FakeCall::kPin);
    DeviceModel model(problem.config, problem.layout, 2, gpu.Here());
    DenseModel expected(problem.config, problem.layout, 2);
    for (int64_t turn = 0; turn < 6; ++turn) {
      CheckSame(StepOf(model, problem.parameters, problem.Bytes(turn, 2), &gpu.gradient),
                StepOf(expected, problem.parameters, problem.Bytes(turn, 2)));
    }
    CHECK(gpu.runtime.counts().graph_launches > 0);
  }
}

TEST_CASE("device model: a step that cannot be captured is done as it is, and captured at the next") {
  const DeviceProblem problem(ModelKind::kMlp, 20, {17}, 5, 40);
  FakeGpu gpu;
  gpu.runtime.FailNext(gpu::cuda::FakeCall::kEndCapture);
  DeviceModel model(problem.config, problem.layout, 12, gpu.Here());
  DenseModel expected(problem.config, problem.layout, 12);
  for (int64_t turn = 0; turn < 12; ++turn) {
    CheckSame(StepOf(model, problem.parameters, problem.Bytes(turn, 12), &gpu.gradient),
              StepOf(expected, problem.parameters, problem.Bytes(turn, 12)));
  }
  CHECK(gpu.runtime.counts().graph_launches > 0);
}

TEST_CASE("device model: what is evaluated together is of one version of shared parameters") {
  const DeviceProblem problem(ModelKind::kSoftmax, 31, {}, 10, 40);
  FakeGpu gpu;
  SharedParameters shared(gpu, problem);
  DeviceModel model(problem.config, problem.layout, 12,
                    {gpu.device, nullptr, shared.queue.shared_stream(), true});
  DenseModel expected(problem.config, problem.layout, 12);
  const float* const frozen = model.Freeze(shared.weights.data());
  shared.queue.Fill(shared.weights.data(), 0, shared.weights.bytes());
  CHECK(model.Evaluate(frozen, problem.Floats(0, 12)).loss_sum ==
        doctest::Approx(expected.Evaluate(problem.parameters.data(), problem.Floats(0, 12)).loss_sum)
            .epsilon(1e-5));
}

}  // namespace
}  // namespace dtrain
