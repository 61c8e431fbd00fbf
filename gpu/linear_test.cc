#include <doctest/doctest.h>
#include <hwy/targets.h>

#include <utility>

#include "gpu/ops.h"
#include "gpu/ref/ref.h"
#include "gpu/testing/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

// One layer with random values, as f32 and as the same values in f64.
struct Layer {
  Layer(int64_t rows, int64_t inputs, int64_t outputs)
      : n(rows),
        k(inputs),
        m(outputs),
        x(Normals(n * k, "x")),
        w(Normals(k * m, "w")),
        b(Normals(m, "b")),
        dout(Normals(n * m, "dout")),
        x64(Doubles(x)),
        w64(Doubles(w)),
        b64(Doubles(b)),
        dout64(Doubles(dout)) {}
  int64_t n, k, m;
  std::vector<float> x, w, b, dout;
  std::vector<double> x64, w64, b64, dout64;
};

// f32 sums of `terms` products of standard normals: each addition rounds to 2^-24 of a partial sum that
// stays below 4 sqrt(terms). The floor in LargestError stands for values near zero.
double SumTolerance(int64_t terms) { return 0x1p-24 * 4 * (1 + static_cast<double>(terms)); }

// A layer's arrays in the memory of a place.
struct Arrays {
  Arrays(Place& place, const Layer& layer)
      : n(layer.n),
        k(layer.k),
        m(layer.m),
        x(place, layer.x),
        w(place, layer.w),
        b(place, layer.b),
        dout(place, layer.dout),
        out(place, n * m),
        dw(place, k * m),
        db(place, m),
        dx(place, n * k) {}
  bool GuardsIntact() {
    return out.GuardsIntact() && dw.GuardsIntact() && db.GuardsIntact() && dx.GuardsIntact();
  }
  const int64_t n, k, m;
  Array<float> x, w, b, dout, out, dw, db, dx;
};

// What ref makes of a layer.
struct Expected {
  explicit Expected(const Layer& layer)
      : out(layer.n * layer.m), dw(layer.k * layer.m), db(layer.m), dx(layer.n * layer.k) {
    const ref::Matrix x(layer.x64.data(), layer.n, layer.k), w(layer.w64.data(), layer.k, layer.m),
        dout(layer.dout64.data(), layer.n, layer.m);
    ref::LinearForward(x, w, layer.b64, {out.data(), layer.n, layer.m});
    ref::LinearGradient(x, dout, {dw.data(), layer.k, layer.m}, db);
    ref::LinearInputGradient(dout, w, {dx.data(), layer.n, layer.k});
  }
  std::vector<double> out, dw, db, dx;
};

void CheckLayer(Place& place, const Layer& layer, const Expected& expected) {
  CAPTURE(place.name());
  CAPTURE(layer.n);
  CAPTURE(layer.k);
  CAPTURE(layer.m);
  Arrays at(place, layer);
  const MatrixView<float> x = at.x.matrix(at.n, at.k), w = at.w.matrix(at.k, at.m),
                          dout = at.dout.matrix(at.n, at.m);
  LinearForward(place.stream(), x, w, at.b.span(), at.out.matrix(at.n, at.m));
  LinearGradient(place.stream(), x, dout, at.dw.matrix(at.k, at.m), at.db.span());
  LinearInputGradient(place.stream(), dout, w, at.dx.matrix(at.n, at.k));
  CHECK(LargestError(at.out.Read(), expected.out, 1) <= SumTolerance(at.k));
  CHECK(LargestError(at.dw.Read(), expected.dw, 1) <= SumTolerance(at.n));
  CHECK(LargestError(at.db.Read(), expected.db, 1) <= SumTolerance(at.n));
  CHECK(LargestError(at.dx.Read(), expected.dx, 1) <= SumTolerance(at.m));
  CHECK(at.GuardsIntact());
}

void CheckLayer(int64_t n, int64_t k, int64_t m) {
  const Layer layer(n, k, m);
  const Expected expected(layer);
  for (Place* place : Places()) CheckLayer(*place, layer, expected);
}

TEST_CASE("linear: forward and gradients agree with ref over odd shapes") {
  for (const int64_t n : kOddSizes) {
    for (const int64_t k : kOddSizes) {
      for (const int64_t m : {1, 2, 10, 33}) CheckLayer(n, k, m);
    }
  }
}

TEST_CASE("linear: layers of few outputs agree with ref") {
  for (int64_t m = 1; m <= 18; ++m) {
    for (const int64_t k : {64, 65, 79, 784}) CheckLayer(m % 2 == 0 ? 100 : 31, k, m);
  }
}

TEST_CASE("linear: biases of many rows, and of many outputs, agree with ref") {
  for (const int64_t m : {1, 10, 32, 33}) CheckLayer(20001, 3, m);
  CheckLayer(700, 2, 500);
  CheckLayer(3, 2, 5003);
}

// A layer whose inputs are rows of a table of bytes, out of order and one of them twice. Of 8 bytes `zeros`
// are zero, in the mean.
struct ByteLayer : Layer {
  ByteLayer(int64_t count, int64_t inputs, int64_t outputs, uint64_t zeros = 0)
      : Layer(count, inputs, outputs), table(static_cast<size_t>((count + 3) * inputs)), rows(count) {
    const CounterRandom random(5), zero = random.Stream("zero");
    for (size_t i = 0; i < table.size(); ++i) {
      table[i] = zero.Below(i, 8) < zeros ? 0 : static_cast<uint8_t>(random.Below(i, 256));
    }
    for (int64_t i = 0; i < n; ++i) rows[i] = i == 0 ? 2 : n - i;
    for (int64_t i = 0; i < n * k; ++i) x64[i] = table[static_cast<size_t>(rows[i / k] * k + i % k)] / 255.0;
  }
  ByteRows bytes() const { return {{table.data(), n + 3, k}, rows}; }
  std::vector<uint8_t> table;
  std::vector<int64_t> rows;
};

void CheckByteLayer(Place& place, const ByteLayer& layer, const Expected& expected, int64_t shift) {
  CAPTURE(place.name());
  CAPTURE(layer.n);
  CAPTURE(layer.k);
  CAPTURE(layer.m);
  Arrays at(place, layer);
  Array<uint8_t> table(place, layer.table, shift);
  Array<int64_t> rows(place, layer.rows);
  const ByteRows x = {table.matrix(at.n + 3, at.k), rows.span()};
  LinearForward(place.stream(), x, at.w.matrix(at.k, at.m), at.b.span(), at.out.matrix(at.n, at.m));
  LinearGradient(place.stream(), x, at.dout.matrix(at.n, at.m), at.dw.matrix(at.k, at.m), at.db.span());
  CHECK(LargestError(at.out.Read(), expected.out, 1) <= SumTolerance(at.k));
  CHECK(LargestError(at.dw.Read(), expected.dw, 1) <= SumTolerance(at.n));
  CHECK(LargestError(at.db.Read(), expected.db, 1) <= SumTolerance(at.n));
  CHECK(at.GuardsIntact());
}

void CheckByteLayer(int64_t n, int64_t k, int64_t m, int64_t shift) {
  const ByteLayer layer(n, k, m);
  const Expected expected(layer);
  for (Place* place : Places()) CheckByteLayer(*place, layer, expected, shift);
}

TEST_CASE("linear: layers on rows of bytes agree with ref") {
  for (const int64_t n : kOddSizes) {
    for (const int64_t k : {1, 7, 8, 31, 64}) {
      for (const int64_t m : {1, 2, 5, 6, 10, 16}) CheckByteLayer(n, k, m, n % 2);
    }
  }
  for (const int64_t m : {1, 2, 5, 6, 10, 16}) CheckByteLayer(33, 785, m, 1);
  CheckByteLayer(100, 784, 10, 0);
}

TEST_CASE("linear: layers on many rows of bytes, and on long ones, agree with ref") {
  for (const int64_t m : {1, 3, 10, 12}) CheckByteLayer(2500, 36, m, 0);
  CheckByteLayer(300, 100, 10, 1);
  CheckByteLayer(7, 3003, 4, 0);
  CheckByteLayer(5, 4096, 10, 0);
}

TEST_CASE("linear: layers of many outputs on bytes agree with ref, with every instruction set") {
  Place cpu;
  const int64_t all = hwy::SupportedTargets();
  for (int64_t left = all; left != 0; left &= left - 1) {  // the lowest bit is the best of them
    UseInstructions(left & -left);
    CAPTURE(hwy::TargetName(left & -left));
    const auto check = [&](const ByteLayer& layer) { CheckByteLayer(cpu, layer, Expected(layer), 1); };
    for (const int64_t m : {17, 18, 24, 31, 32, 33, 40, 48, 63, 65, 80, 96, 100, 112, 128, 129, 200, 300}) {
      check(ByteLayer(3, 70, m, 6));
    }
    for (const int64_t n : {0, 1, 31, 63, 64, 65, 100, 129}) {
      for (const int64_t k : {0, 1, 63, 64, 65, 130}) check(ByteLayer(n, k, 20, 6));
    }
    for (const uint64_t zeros : {0, 6, 8}) check(ByteLayer(100, 784, 100, zeros));
  }
  UseInstructions(0);
}

TEST_CASE("linear: many outputs of bytes that are mostly zero are faster on one thread") {
  SetThreads(1);
  const ByteLayer dense(100, 80, 100), half(100, 80, 100, 5);
  for (const auto& [layer, faster] : {std::pair(&dense, false), std::pair(&half, true)}) {
    CHECK(BytesAreFaster(Stream(), layer->bytes(), 100) == faster);
    CHECK(BytesAreFaster(Stream(), layer->bytes(), kMaxByteOutputs));
  }
  CHECK_FALSE(BytesAreFaster(Stream(), half.n, 100));  // not for any bytes
  CHECK_FALSE(BytesAreFaster(Stream(), ByteLayer(1, 80, 100, 8).bytes(), 100));
  for (Place* place : Places()) {
    if (place->queue() != nullptr) CHECK_FALSE(BytesAreFaster(place->stream(), half.bytes(), 100));
  }
  SetThreads(2);
  CHECK_FALSE(BytesAreFaster(Stream(), half.bytes(), 100));
  SetThreads(1);
}

TEST_CASE("linear: the gradient of no rows is zero, and outputs of no inputs are the biases") {
  for (Place* place : Places()) {
    Array<float> dw(*place, 4 * 3), db(*place, 3), b(*place, {1, 2, 3}), out(*place, 2 * 3);
    LinearGradient(place->stream(), {nullptr, 0, 4}, {nullptr, 0, 3}, dw.matrix(4, 3), db.span());
    CHECK(dw.Read() == std::vector<float>(12));
    CHECK(db.Read() == std::vector<float>(3));
    LinearForward(place->stream(), {nullptr, 2, 0}, {nullptr, 0, 3}, b.span(), out.matrix(2, 3));
    CHECK(out.Read() == std::vector<float>{1, 2, 3, 1, 2, 3});
  }
}

TEST_CASE("linear: with an activation the outputs have the bits of Activate") {
  const ByteLayer layer(33, 80, 20);
  for (Place* place : Places()) {
    Arrays at(*place, layer);
    Array<uint8_t> table(*place, layer.table);
    Array<int64_t> rows(*place, layer.rows);
    for (const Activation kind : {Activation::kSigmoid, Activation::kTanh, Activation::kRelu}) {
      for (const int64_t m : {12, 9, 20}) {
        if (m > kMaxByteOutputs && place->queue() != nullptr) continue;
        for (const bool bytes : {false, true}) {
          const auto outputs = [&](std::optional<Activation> activation, bool apart) {
            const MatrixView<float> w = at.w.matrix(80, m), out = at.out.matrix(33, m);
            if (bytes) {
              const ByteRows x = {table.matrix(36, 80), rows.span()};
              LinearForward(place->stream(), x, w, {at.b.data(), m}, out, activation);
            } else {
              LinearForward(place->stream(), at.x.matrix(33, 80), w, {at.b.data(), m}, out, activation);
            }
            if (apart) Activate(place->stream(), kind, {out.data, out.size()});
            std::vector<float> values = at.out.Read();
            values.resize(static_cast<size_t>(out.size()));  // the others were not written
            return values;
          };
          CHECK(outputs(kind, false) == outputs({}, true));
        }
      }
    }
  }
}

// L = sum of dout * (x w + b) is linear in w and b, so that a finite difference of any width is exact but
// for rounding.
template <typename T, typename Loss>
void CheckDifferences(std::vector<T>* parameters, const std::vector<T>& gradient, Loss loss,
                      double tolerance) {
  for (size_t i = 0; i < parameters->size(); ++i) {
    const T kept = (*parameters)[i];
    (*parameters)[i] = kept + 1;
    const double above = loss();
    (*parameters)[i] = kept - 1;
    const double below = loss();
    (*parameters)[i] = kept;
    CHECK((above - below) / 2 == doctest::Approx(gradient[i]).epsilon(tolerance).scale(10));
  }
}

TEST_CASE("linear: ref's gradient is that of finite differences") {
  Layer layer(7, 5, 3);
  std::vector<double> out(7 * 3), dw(5 * 3), db(3);
  const auto loss = [&] {
    ref::LinearForward({layer.x64.data(), 7, 5}, {layer.w64.data(), 5, 3}, layer.b64, {out.data(), 7, 3});
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += layer.dout64[i] * out[i];
    return sum;
  };
  ref::LinearGradient({layer.x64.data(), 7, 5}, {layer.dout64.data(), 7, 3}, {dw.data(), 5, 3}, db);
  CheckDifferences<double>(&layer.w64, dw, loss, 1e-13);
  CheckDifferences<double>(&layer.b64, db, loss, 1e-13);
}

void CheckDifferencesAt(Place& place, int64_t n) {
  Layer layer(n, 31, 3);
  Arrays at(place, layer);
  const auto loss = [&] {
    Array<float> w(place, layer.w), b(place, layer.b);
    LinearForward(place.stream(), at.x.matrix(n, 31), w.matrix(31, 3), b.span(), at.out.matrix(n, 3));
    const std::vector<float> out = at.out.Read();
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += static_cast<double>(layer.dout[i]) * out[i];
    return sum;
  };
  LinearGradient(place.stream(), at.x.matrix(n, 31), at.dout.matrix(n, 3), at.dw.matrix(31, 3), at.db.span());
  // 33 outputs of magnitude 10 to 30, each rounded to 2^-20 or so.
  CheckDifferences<float>(&layer.w, at.dw.Read(), loss, 1e-5);
  CheckDifferences<float>(&layer.b, at.db.Read(), loss, 1e-5);
}

TEST_CASE("linear: the gradient is that of finite differences, with loops and with OpenBLAS") {
  for (Place* place : Places()) {
    for (const int64_t n : {2, 33}) CheckDifferencesAt(*place, n);
  }
}

TEST_CASE("linear: products are right after the number of threads went down and up") {
  for (const int threads : {1, 2, 1}) {
    SetThreads(threads);
    CheckLayer(100, 784, 10);
  }
}

}  // namespace
}  // namespace dtrain::gpu
