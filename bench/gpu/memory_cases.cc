// Operations of gpu/ops.h that are bound by memory. Sizes: some hundred megabytes a call.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/gpu/gpu_cases.h"

namespace dtrain::bench {
namespace {

using gpu::cuda::Buffer;
using Work = std::function<void()>;

constexpr int64_t kColumns = 4096;
constexpr int64_t kPixels = 784;

// What the operations here are given: as much of it as one needs.
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
  // Of all floats, with so many bytes of each.
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

  // Layers without inputs: what is left beside the product.
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

}  // namespace dtrain::bench
