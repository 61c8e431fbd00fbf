// Measures the operations of gpu/ops.h and gpu/optimizer_ops.h at the shapes of the jobs, each beside its
// limit in the same run: OpenBLAS at the same shape for products, the C library's exponential for losses, a
// copy of as many bytes for optimizers with slots, and one plain pass over the same memory for all others.
#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/compare.h"
#include "bench/limit/passes.h"
#include "gpu/ops.h"
#include "gpu/optimizer_ops.h"

namespace dtrain::bench {
namespace {

constexpr float kRate = 1e-6f;
constexpr int64_t kImageRows = 55000;
constexpr int64_t kPixels = 784;

using Floats = std::vector<float>;

Floats RandomFloats(int64_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats values(static_cast<size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return uniform(random); });
  return values;
}

std::vector<int32_t> RandomLabels(int64_t count, int32_t classes) {
  std::mt19937 random(2);
  std::vector<int32_t> labels(static_cast<size_t>(count));
  std::generate(labels.begin(), labels.end(), [&] { return static_cast<int32_t>(random() % classes); });
  return labels;
}

gpu::Stream& Cpu() {
  static gpu::Stream stream;
  return stream;
}

// [rows, inner] x [inner, cols]
struct Shape {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t cols = 0;
};

Prepare LinearForward(Shape s) {
  return [s]() -> Timed {
    return [s, x = RandomFloats(s.rows * s.inner), w = RandomFloats(s.inner * s.cols), b = Floats(s.cols),
            out = Floats(s.rows * s.cols)]() mutable {
      gpu::LinearForward(Cpu(), {x.data(), s.rows, s.inner}, {w.data(), s.inner, s.cols}, b,
                         {out.data(), s.rows, s.cols});
    };
  };
}

Prepare LinearGradient(Shape s) {
  return [s]() -> Timed {
    return [s, x = RandomFloats(s.rows * s.inner), dout = RandomFloats(s.rows * s.cols),
            dw = Floats(s.inner * s.cols), db = Floats(s.cols)]() mutable {
      gpu::LinearGradient(Cpu(), {x.data(), s.rows, s.inner}, {dout.data(), s.rows, s.cols},
                          {dw.data(), s.inner, s.cols}, db);
    };
  };
}

Prepare Product(Shape s, CBLAS_TRANSPOSE left = CblasNoTrans) {
  return [s, left]() -> Timed {
    return [s, left, a = RandomFloats(s.rows * s.inner), b = RandomFloats(s.inner * s.cols),
            out = Floats(s.rows * s.cols)]() mutable {
      const auto rows = static_cast<int>(s.rows), inner = static_cast<int>(s.inner),
                 cols = static_cast<int>(s.cols);
      cblas_sgemm(CblasRowMajor, left, CblasNoTrans, rows, cols, inner, 1, a.data(),
                  left == CblasNoTrans ? inner : rows, b.data(), cols, 0, out.data(), cols);
    };
  };
}

// Returns the product that LinearGradient computes for a layer of shape `s`.
Prepare TransposedProduct(Shape s) { return Product({s.inner, s.rows, s.cols}, CblasTrans); }

Prepare SoftmaxXent(int64_t rows, int64_t classes) {
  return [=]() -> Timed {
    return [=, logits = RandomFloats(rows * classes), slopes = Floats(rows * classes),
            labels = RandomLabels(rows, static_cast<int32_t>(classes)), loss = 0.0f]() mutable {
      gpu::SoftmaxXent(Cpu(), {logits.data(), rows, classes}, labels, {slopes.data(), rows, classes}, &loss);
    };
  };
}

Prepare SigmoidXent(int64_t rows) {
  return [=]() -> Timed {
    return [logits = RandomFloats(rows), slopes = Floats(rows), labels = RandomLabels(rows, 2),
            loss = 0.0f]() mutable { gpu::SigmoidXent(Cpu(), logits, labels, slopes, &loss); };
  };
}

Prepare MeanSquaredError(int64_t rows) {
  return [=]() -> Timed {
    return [y = RandomFloats(rows), t = Floats(rows), slopes = Floats(rows), loss = 0.0f]() mutable {
      gpu::MeanSquaredError(Cpu(), y, t, slopes, &loss);
    };
  };
}

Prepare PointLoss(gpu::LossKind kind, int64_t rows) {
  return [=]() -> Timed {
    Floats targets = RandomFloats(rows);
    for (float& target : targets) target = std::abs(target) + 0.1f;
    return [=, z = RandomFloats(rows), slopes = Floats(rows), loss = 0.0f]() mutable {
      gpu::MeanPointLoss(Cpu(), {kind, 1.5}, gpu::Span<const float>(z), gpu::Span<const float>(targets),
                         slopes, &loss);
    };
  };
}

Prepare Exponentials(int64_t count) {
  return [=]() -> Timed {
    return [=, values = RandomFloats(count), out = Floats(count)]() mutable {
      ExponentialPass(values.data(), out.data(), count);
    };
  };
}

// One update of `count` weights, out of place, as when the last version is still being sent to a worker.
struct UpdateData {
  explicit UpdateData(int64_t count)
      : from(RandomFloats(count)),
        slopes(RandomFloats(count)),
        to(count),
        slots{Floats(count), Floats(count)} {}
  gpu::Update Next() {
    gpu::Update update;
    update.weights = from;
    update.gradient = reinterpret_cast<const std::byte*>(slopes.data());
    update.updated = to;
    return update;
  }
  Floats from, slopes, to, slots[2];
};

using StepFunction = void (*)(UpdateData&);

void Sgd(UpdateData& data) { gpu::SgdStep(Cpu(), data.Next(), kRate); }
void ShapedSgd(UpdateData& data) {
  gpu::Update update = data.Next();
  update.clip_value = 0.5f;
  update.l2 = 1e-3f;
  gpu::SgdStep(Cpu(), update, kRate);
}
void Momentum(UpdateData& data) {
  gpu::MomentumStep(Cpu(), data.Next(), {kRate, 0.9f, false}, data.slots[0]);
}
void Adagrad(UpdateData& data) { gpu::AdagradStep(Cpu(), data.Next(), {kRate, 1e-8f}, data.slots[0]); }
void Rmsprop(UpdateData& data) {
  gpu::RmspropStep(Cpu(), data.Next(), {kRate, 0.9f, 0.1f, 1e-8f}, data.slots[0]);
}
void Adam(UpdateData& data) {
  const gpu::AdamRule rule = {kRate, 0.9f, 0.1f, 0.999f, 0.001f, 1, 1e-8f};
  gpu::AdamStep(Cpu(), data.Next(), rule, data.slots[0], data.slots[1]);
}
void Ftrl(UpdateData& data) {
  gpu::FtrlStep(Cpu(), data.Next(), {1 / kRate, 1 / kRate, 1, 0.1f, 0.1f}, data.slots[0], data.slots[1]);
}

Prepare Step(StepFunction step, int64_t count) {
  return [=]() -> Timed { return [step, data = UpdateData(count)]() mutable { step(data); }; };
}

// Returns the bytes that an update of `count` weights with `slots` reads and writes.
int64_t UpdateBytes(int64_t count, int64_t slots) {
  return count * (3 + 2 * slots) * static_cast<int64_t>(sizeof(float));
}
Prepare Copy(int64_t bytes) {
  return [=]() -> Timed {
    const auto half = static_cast<size_t>(bytes / 2);
    return [half, from = std::vector<char>(half, 1), to = std::vector<char>(half)]() mutable {
      std::memcpy(to.data(), from.data(), half);
      benchmark::ClobberMemory();
    };
  };
}

// Measures an optimizer beside a copy of as many bytes.
void CompareStep(const std::string& name, StepFunction step, int64_t slots) {
  for (const auto& [size, count] :
       {std::pair("79510", int64_t{79510}), std::pair("16Mi", int64_t{16 << 20})}) {
    const int64_t bytes = UpdateBytes(count, slots);
    Compare(name + " " + size, Step(step, count), Copy(bytes), bytes);
  }
}

Prepare Update(int64_t count) {
  return [=]() -> Timed {
    return [=, from = RandomFloats(count), slopes = RandomFloats(count), to = Floats(count)]() mutable {
      UpdatePass(from.data(), slopes.data(), kRate, to.data(), count);
    };
  };
}

Prepare AnyNonFinite(int64_t count) {
  return [=]() -> Timed {
    return [=, values = RandomFloats(count)] {
      benchmark::DoNotOptimize(
          gpu::AnyNonFinite(Cpu(), reinterpret_cast<const std::byte*>(values.data()), count));
    };
  };
}

Prepare AddSquares(int64_t count) {
  return [=]() -> Timed {
    return [=, values = RandomFloats(count)] {
      gpu::SquareSum sum;
      gpu::AddSquares(Cpu(), reinterpret_cast<const std::byte*>(values.data()), count, &sum);
      benchmark::DoNotOptimize(sum);
    };
  };
}

Prepare Read(int64_t count) {
  return [=]() -> Timed {
    return [=, values = std::vector<uint32_t>(static_cast<size_t>(count), 1)] {
      benchmark::DoNotOptimize(ReadPass(values.data(), count));
    };
  };
}

// A table of images, and the rows of one shuffled epoch in batches. `ink`: how many of 1,000 bytes differ
// from zero.
struct Images {
  std::vector<uint8_t> table;
  std::vector<int64_t> order;
  int64_t next = 0;

  explicit Images(uint32_t ink = 1000) : table(kImageRows * kPixels), order(kImageRows) {
    std::mt19937 random(3);
    std::generate(table.begin(), table.end(), [&] {
      const auto byte = static_cast<uint8_t>(random());
      return random() % 1000 < ink ? byte : uint8_t{0};
    });
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
  }
  gpu::ByteRows Next(int64_t rows) {
    next = next + rows > kImageRows ? 0 : next;
    next += rows;
    return {{table.data(), kImageRows, kPixels}, {order.data() + next - rows, rows}};
  }
};

Prepare GatherBytes(int64_t rows) {
  return [=]() -> Timed {
    return [=, images = Images(), out = Floats(rows * kPixels)]() mutable {
      gpu::GatherBytes(Cpu(), images.Next(rows), {out.data(), rows, kPixels});
    };
  };
}

Prepare Gather(int64_t rows) {
  return [=]() -> Timed {
    return [=, images = Images(), out = Floats(rows * kPixels)]() mutable {
      GatherPass(images.table.data(), images.Next(rows).rows.data, rows, kPixels, out.data());
    };
  };
}

constexpr uint32_t kInkOfDigits = 191;  // MNIST's

// As a model does it: a first look at the bytes says that they are mostly zero.
Prepare ForwardOfDigits(int64_t rows, int64_t outputs) {
  return [=]() -> Timed {
    return [=, images = Images(kInkOfDigits), w = RandomFloats(kPixels * outputs), b = Floats(outputs),
            out = Floats(rows * outputs)]() mutable {
      const gpu::ByteRows x = images.Next(rows);
      benchmark::DoNotOptimize(gpu::BytesAreFaster(Cpu(), x, outputs));
      gpu::LinearForward(Cpu(), x, {w.data(), kPixels, outputs}, b, {out.data(), rows, outputs});
    };
  };
}

Prepare GradientOfDigits(int64_t rows, int64_t outputs) {
  return [=]() -> Timed {
    return [=, images = Images(kInkOfDigits), dout = RandomFloats(rows * outputs),
            dw = Floats(kPixels * outputs), db = Floats(outputs)]() mutable {
      gpu::LinearGradient(Cpu(), images.Next(rows), {dout.data(), rows, outputs},
                          {dw.data(), kPixels, outputs}, db);
    };
  };
}

void RegisterAll() {
  Compare("LinearForward 100x784x10", LinearForward({100, 784, 10}), Product({100, 784, 10}));
  Compare("LinearForward 100x784x100", LinearForward({100, 784, 100}), Product({100, 784, 100}));
  Compare("LinearForward of digits 100x784x100", ForwardOfDigits(100, 100), Product({100, 784, 100}));
  Compare("LinearForward 100x100x10", LinearForward({100, 100, 10}), Product({100, 100, 10}));
  Compare("LinearGradient 100x784x10", LinearGradient({100, 784, 10}), TransposedProduct({100, 784, 10}));
  Compare("LinearGradient 100x784x100", LinearGradient({100, 784, 100}), TransposedProduct({100, 784, 100}));
  Compare("LinearGradient of digits 100x784x100", GradientOfDigits(100, 100),
          TransposedProduct({100, 784, 100}));
  Compare("LinearGradient 100x100x10", LinearGradient({100, 100, 10}), TransposedProduct({100, 100, 10}));
  Compare("SoftmaxXent 100x10", SoftmaxXent(100, 10), Exponentials(1000));
  Compare("SoftmaxXent 100x1000", SoftmaxXent(100, 1000), Exponentials(100000));
  Compare("SigmoidXent 100", SigmoidXent(100), Exponentials(100));
  Compare("MeanSquaredError 100", MeanSquaredError(100), Update(100));
  for (const gpu::LossRow& row : gpu::LossTable()) {
    if (!row.of_classes)
      Compare(std::string(row.name) + " 1000", PointLoss(row.kind, 1000), MeanSquaredError(1000));
  }
  Compare("SgdStep 7850", Step(Sgd, 7850), Update(7850), UpdateBytes(7850, 0));
  Compare("SgdStep 79510", Step(Sgd, 79510), Update(79510), UpdateBytes(79510, 0));
  Compare("SgdStep 16Mi", Step(Sgd, 16 << 20), Update(16 << 20), UpdateBytes(16 << 20, 0));
  CompareStep("ShapedSgdStep", ShapedSgd, 0);
  CompareStep("MomentumStep", Momentum, 1);
  CompareStep("AdagradStep", Adagrad, 1);
  CompareStep("RmspropStep", Rmsprop, 1);
  CompareStep("AdamStep", Adam, 2);
  CompareStep("FtrlStep", Ftrl, 2);
  Compare("AnyNonFinite 7850", AnyNonFinite(7850), Read(7850));
  Compare("AnyNonFinite 16Mi", AnyNonFinite(16 << 20), Read(16 << 20));
  Compare("AddSquares 7850", AddSquares(7850), Read(7850));
  Compare("AddSquares 16Mi", AddSquares(16 << 20), Read(16 << 20));
  Compare("GatherBytes 100x784", GatherBytes(100), Gather(100));
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) {
  dtrain::gpu::SetThreads(1);
  dtrain::bench::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
