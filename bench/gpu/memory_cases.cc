// Memory-bound operations beside a copy of as many bytes. A call moves several times the size of the caches,
// so that each call finds them full of other data.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/gpu/gpu_cases.h"
#include "bench/report/rows.h"
#include "gpu/optimizer_ops.h"

namespace dtrain::bench {
namespace {

constexpr int kRepeats = 20;
constexpr double kBytesOfGigabyte = 1e9;

double GigabytesPerSecond(int64_t bytes, double milliseconds) {
  return static_cast<double>(bytes) / kBytesOfGigabyte / (milliseconds / 1000);
}

// Returns a copy that reads half of the bytes and writes the other half.
std::function<void()> Copy(Gpu& gpu, int64_t bytes) {
  struct Data {
    gpu::cuda::Buffer<float> from, to;
  };
  const int64_t floats = bytes / 2 / static_cast<int64_t>(sizeof(float));
  auto data = std::make_shared<Data>(Data{gpu.Floats(floats), gpu.Empty<float>(floats)});
  return [&gpu, data] { gpu.queue().Copy(data->to.data(), data->from.data(), data->to.bytes()); };
}

std::vector<Row> Measure(const GpuSettings& settings, Gpu& gpu, const MemoryOperation& operation) {
  Row row = {operation.name, operation.what, "GB/s", "0.8", false, {}, {}, {}, {}};
  const int repeats = settings.repeats(kRepeats);
  const auto turn = [&](const std::function<void()>& work, std::vector<double>* speeds) {
    speeds->push_back(GigabytesPerSecond(operation.bytes, gpu.Milliseconds(repeats, work)));
  };
  const std::function<void()> ours = operation.prepare(), limit = Copy(gpu, operation.bytes);
  gpu.Milliseconds(2, ours);
  gpu.Milliseconds(2, limit);
  TakeTurns(
      settings.report.rounds, [&] { turn(ours, &row.dtrain); }, [&] { turn(limit, &row.limit); });
  return {row};
}

}  // namespace

Case MemoryCase(const GpuSettings& settings, Gpu& gpu, const MemoryOperation& operation) {
  return {{operation.name}, [&settings, &gpu, operation] { return Measure(settings, gpu, operation); }};
}

// The memory-bound operations of gpu/ops.h, with some hundred megabytes per call.
namespace {

using gpu::cuda::Buffer;
using Work = std::function<void()>;

constexpr int64_t kColumns = 4096;
constexpr int64_t kPixels = 784;

// Data: the operands of the operations here, allocated as needed.
struct Data {
  Buffer<float> in, out, third, fourth;
  Buffer<uint16_t> halves;
  Buffer<int32_t> labels;
  Buffer<uint8_t> bytes;
  Buffer<int64_t> rows;
  Buffer<float> loss;
  Buffer<int64_t> count;
};

class Operations {
 public:
  Operations(const GpuSettings& settings, Gpu& gpu)
      : settings_(settings), gpu_(gpu), floats_(settings.size(int64_t{64} << 20, 2 * kColumns)) {}

  std::vector<Case> All() {
    Copy();
    for (const int64_t classes : {10, 100, 1000, 32000}) Softmax(classes);
    Losses();
    Activations();
    Layers();
    Elements();
    Rows();
    Halves();
    return std::move(cases_);
  }

 private:
  using Fill = std::function<void(Data&)>;
  using Operation = std::function<void(gpu::Stream&, Data&)>;

  void Add(const std::string& name, const std::string& what, int64_t bytes, const Fill& fill,
           const Operation& operation) {
    Gpu& gpu = gpu_;
    const auto prepare = [&gpu, fill, operation]() -> Work {
      const auto data = std::make_shared<Data>();
      fill(*data);
      return [&gpu, data, operation] { operation(gpu.stream(), *data); };
    };
    cases_.push_back(MemoryCase(settings_, gpu_, {"memory_" + name, what, bytes, prepare}));
  }
  // Adds an operation on all floats that moves `bytes` bytes for each.
  void AddEach(const std::string& name, const std::string& what, int64_t bytes, const Fill& fill,
               const Operation& operation) {
    Add(name, fmt::format("{}, {} bytes each", what, bytes), bytes * floats_, fill, operation);
  }

  Fill InOut() {
    return [n = floats_, &gpu = gpu_](Data& data) {
      data.in = gpu.Floats(n);
      data.out = gpu.Floats(n);
    };
  }

  void Copy() {
    AddEach("copy", "a copy through a kernel's stream", 8, InOut(), [](gpu::Stream& stream, Data& data) {
      stream.queue().Copy(data.out.data(), data.in.data(), data.in.bytes());
    });
  }

  void Softmax(int64_t classes) {
    const int64_t rows = std::max<int64_t>(1, floats_ / classes);
    Add(
        fmt::format("softmax_{}", classes), fmt::format("SoftmaxXent, {} rows of {}", rows, classes),
        rows * classes * 8 + rows * 4,
        [&gpu = gpu_, rows, classes](Data& data) {
          data.in = gpu.Floats(rows * classes);
          data.out = gpu.Empty<float>(rows * classes);
          data.labels = gpu.Labels(rows, classes);
          data.loss = gpu.Empty<float>(1);
        },
        [rows, classes](gpu::Stream& stream, Data& data) {
          gpu::SoftmaxXent(stream, {data.in.data(), rows, classes}, data.labels.span(),
                           {data.out.data(), rows, classes}, data.loss.data());
        });
  }

  Fill LossData(bool with_labels) {
    return [n = floats_, &gpu = gpu_, with_labels](Data& data) {
      data.in = gpu.Floats(n);
      data.out = gpu.Empty<float>(n);
      if (with_labels) {
        data.labels = gpu.Labels(n, 2);
      } else {
        data.third = gpu.Floats(n);
      }
      data.loss = gpu.Empty<float>(1);
    };
  }

  void Losses() {
    AddEach("squared_error", "MeanSquaredError", 12, LossData(false), [](gpu::Stream& stream, Data& data) {
      gpu::MeanSquaredError(stream, data.in.span(), data.third.span(), data.out.span(), data.loss.data());
    });
    AddEach("sigmoid_xent", "SigmoidXent", 12, LossData(true), [](gpu::Stream& stream, Data& data) {
      gpu::SigmoidXent(stream, data.in.span(), data.labels.span(), data.out.span(), data.loss.data());
    });
  }

  void Activations() {
    for (const auto& [name, kind] :
         {std::pair("sigmoid", gpu::Activation::kSigmoid), std::pair("tanh", gpu::Activation::kTanh),
          std::pair("relu", gpu::Activation::kRelu)}) {
      AddEach(
          std::string("activate_") + name, std::string("Activate, ") + name, 8, InOut(),
          [kind = kind](gpu::Stream& stream, Data& data) { gpu::Activate(stream, kind, data.out.span()); });
      AddEach(std::string("activation_gradient_") + name, std::string("ActivationGradient, ") + name, 12,
              InOut(), [kind = kind](gpu::Stream& stream, Data& data) {
                gpu::ActivationGradient(stream, kind, data.in.span(), data.out.span());
              });
    }
  }

  // Adds layers without inputs: what remains beside the product.
  void Layers() {
    const int64_t rows = floats_ / kColumns;
    const auto biases = [&gpu = gpu_, n = floats_](Data& data) {
      data.in = gpu.Floats(kColumns);
      data.out = gpu.Floats(n);
    };
    AddEach("bias_relu", "zeros, then biases and relu", 12, biases, [rows](gpu::Stream& stream, Data& data) {
      gpu::LinearForward(stream, {nullptr, rows, 0}, {nullptr, 0, kColumns}, data.in.span(),
                         {data.out.data(), rows, kColumns}, gpu::Activation::kRelu);
    });
    AddEach("column_sums", "a gradient of biases: column sums", 4, biases,
            [rows](gpu::Stream& stream, Data& data) {
              gpu::LinearGradient(stream, {nullptr, rows, 0}, {data.out.data(), rows, kColumns},
                                  {nullptr, 0, kColumns}, data.in.span());
            });
  }

  void Elements() {
    AddEach("scale", "Scale", 8, InOut(),
            [](gpu::Stream& stream, Data& data) { gpu::Scale(stream, 0.999f, data.out.span()); });
    AddEach(
        "check_finite", "CheckFinite", 4,
        [&gpu = gpu_, n = floats_](Data& data) {
          data.in = gpu.Floats(n);
          data.count = gpu.Empty<int64_t>(1);
        },
        [](gpu::Stream& stream, Data& data) { gpu::CheckFinite(stream, data.in.span(), data.count.data()); });
    AddEach(
        "sum_3", "Sum of 3", 16,
        [&gpu = gpu_, n = floats_](Data& data) {
          data.in = gpu.Floats(n);
          data.third = gpu.Floats(n);
          data.fourth = gpu.Floats(n);
          data.out = gpu.Empty<float>(n);
        },
        [](gpu::Stream& stream, Data& data) {
          const auto bytes = [](const Buffer<float>& buffer) {
            return reinterpret_cast<const std::byte*>(buffer.data());
          };
          const std::byte* const inputs[] = {bytes(data.in), bytes(data.third), bytes(data.fourth)};
          gpu::Sum(stream, {inputs, 3}, data.out.span());
        });
  }

  void Rows() {
    const int64_t rows = std::max<int64_t>(8, 2 * floats_ / kPixels);
    const int64_t values = rows * kPixels;
    Add(
        "gather_bytes", fmt::format("GatherBytes, {} rows of {}, shuffled", rows, kPixels),
        5 * values + 8 * rows,
        [&gpu = gpu_, rows, values](Data& data) {
          data.bytes = gpu.Bytes(values);
          data.rows = gpu.Shuffled(rows);
          data.out = gpu.Empty<float>(values);
        },
        [rows](gpu::Stream& stream, Data& data) {
          gpu::GatherBytes(stream, {{data.bytes.data(), rows, kPixels}, {data.rows.data(), rows}},
                           {data.out.data(), rows, kPixels});
        });
  }

  void Halves() {
    for (const auto& [name, half] :
         {std::pair("float16", gpu::Half::kFloat16), std::pair("bfloat16", gpu::Half::kBfloat16)}) {
      const auto data_of = [&gpu = gpu_, n = floats_](Data& data) {
        data.in = gpu.Floats(n);
        data.halves = gpu.Empty<uint16_t>(n);
        gpu::ToHalf(gpu.stream(), gpu::Half::kFloat16, data.in.span(), data.halves.span());
      };
      AddEach(std::string("to_") + name, std::string("ToHalf, ") + name, 6, data_of,
              [half = half](gpu::Stream& stream, Data& data) {
                gpu::ToHalf(stream, half, data.in.span(), data.halves.span());
              });
      AddEach(std::string("from_") + name, std::string("FromHalf, ") + name, 6, data_of,
              [half = half](gpu::Stream& stream, Data& data) {
                gpu::FromHalf(stream, half, data.halves.span(), data.in.span());
              });
    }
  }

  const GpuSettings& settings_;
  Gpu& gpu_;
  const int64_t floats_;
  std::vector<Case> cases_;
};

}  // namespace

std::vector<Case> GpuMemoryCases(const GpuSettings& settings, Gpu& gpu) {
  return Operations(settings, gpu).All();
}

// The update of a range of weights by every optimizer: 12 bytes for each weight and 8 for each of its slots.
namespace {

using gpu::cuda::Buffer;

constexpr float kRate = 1e-6f;

struct Weights {
  Buffer<float> from, to, slopes, slots[2];
  gpu::Update Next() const {
    gpu::Update update;
    update.weights = from.span();
    update.gradient = reinterpret_cast<const std::byte*>(slopes.data());
    update.updated = to.span();
    return update;
  }
};

void Sgd(gpu::Stream& stream, Weights& data) { gpu::SgdStep(stream, data.Next(), kRate); }
void ShapedSgd(gpu::Stream& stream, Weights& data) {
  gpu::Update update = data.Next();
  update.clip_value = 0.5f;
  update.l2 = 1e-3f;
  gpu::SgdStep(stream, update, kRate);
}
void Momentum(gpu::Stream& stream, Weights& data) {
  gpu::MomentumStep(stream, data.Next(), {kRate, 0.9f, false}, data.slots[0].span());
}
void Adagrad(gpu::Stream& stream, Weights& data) {
  gpu::AdagradStep(stream, data.Next(), {kRate, 1e-8f}, data.slots[0].span());
}
void Rmsprop(gpu::Stream& stream, Weights& data) {
  gpu::RmspropStep(stream, data.Next(), {kRate, 0.9f, 0.1f, 1e-8f}, data.slots[0].span());
}
void Adam(gpu::Stream& stream, Weights& data) {
  const gpu::AdamRule rule = {kRate, 0.9f, 0.1f, 0.999f, 0.001f, 1, 1e-8f};
  gpu::AdamStep(stream, data.Next(), rule, data.slots[0].span(), data.slots[1].span());
}
void Ftrl(gpu::Stream& stream, Weights& data) {
  gpu::FtrlStep(stream, data.Next(), {1 / kRate, 1 / kRate, 1, 0.1f, 0.1f}, data.slots[0].span(),
                data.slots[1].span());
}

struct Optimizer {
  const char* name;
  void (*step)(gpu::Stream&, Weights&);
  int slots;
};
constexpr Optimizer kOptimizers[] = {{"sgd", Sgd, 0},           {"shaped_sgd", ShapedSgd, 0},
                                     {"momentum", Momentum, 1}, {"adagrad", Adagrad, 1},
                                     {"rmsprop", Rmsprop, 1},   {"adam", Adam, 2},
                                     {"ftrl", Ftrl, 2}};

std::function<void()> Prepare(Gpu& gpu, const Optimizer& optimizer, int64_t count) {
  const auto data = std::make_shared<Weights>();
  data->from = gpu.Floats(count);
  data->to = gpu.Empty<float>(count);
  data->slopes = gpu.Floats(count);
  for (int i = 0; i < optimizer.slots; ++i) {
    data->slots[i] = gpu.Floats(count);
    gpu::Activate(gpu.stream(), gpu::Activation::kSigmoid,
                  data->slots[i].span());  // values above 0, for square roots
  }
  return [&gpu, data, step = optimizer.step] { step(gpu.stream(), *data); };
}

}  // namespace

std::vector<Case> GpuOptimizerCases(const GpuSettings& settings, Gpu& gpu) {
  const int64_t count = settings.size(int64_t{32} << 20, 5000);
  std::vector<Case> cases;
  for (const Optimizer& optimizer : kOptimizers) {
    const int64_t bytes = 12 + 8 * optimizer.slots;
    cases.push_back(
        MemoryCase(settings, gpu,
                   {fmt::format("optimizer_{}", optimizer.name),
                    fmt::format("{}, {} weights, {} bytes each", optimizer.name, count, bytes), bytes * count,
                    [&gpu, &optimizer, count] { return Prepare(gpu, optimizer, count); }}));
  }
  return cases;
}

}  // namespace dtrain::bench
