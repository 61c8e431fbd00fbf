#include <doctest/doctest.h>

#include "gpu/ops.h"
#include "gpu/ref/ref.h"
#include "gpu/test_util.h"

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

void CheckForward(const Layer& layer) {
  Stream stream(Backend::kCpu);
  Guarded<float> out(layer.n * layer.m);
  std::vector<double> expected(layer.n * layer.m);
  LinearForward(stream, {layer.x.data(), layer.n, layer.k}, {layer.w.data(), layer.k, layer.m}, layer.b,
                out.matrix(layer.n, layer.m));
  ref::LinearForward({layer.x64.data(), layer.n, layer.k}, {layer.w64.data(), layer.k, layer.m}, layer.b64,
                     {expected.data(), layer.n, layer.m});
  CHECK(LargestError(out.span(), expected, 1) <= SumTolerance(layer.k));
  CHECK(out.GuardsIntact());
}

void CheckGradient(const Layer& layer) {
  Stream stream(Backend::kCpu);
  Guarded<float> dw(layer.k * layer.m), db(layer.m);
  std::vector<double> expected_dw(layer.k * layer.m), expected_db(layer.m);
  LinearGradient(stream, {layer.x.data(), layer.n, layer.k}, {layer.dout.data(), layer.n, layer.m},
                 dw.matrix(layer.k, layer.m), db.span());
  ref::LinearGradient({layer.x64.data(), layer.n, layer.k}, {layer.dout64.data(), layer.n, layer.m},
                      {expected_dw.data(), layer.k, layer.m}, expected_db);
  CHECK(LargestError(dw.span(), expected_dw, 1) <= SumTolerance(layer.n));
  CHECK(LargestError(db.span(), expected_db, 1) <= SumTolerance(layer.n));
  CHECK(dw.GuardsIntact());
  CHECK(db.GuardsIntact());
}

TEST_CASE("linear: forward and gradient agree with ref over odd shapes") {
  for (const int64_t n : kOddSizes) {
    for (const int64_t k : kOddSizes) {
      for (const int64_t m : {1, 2, 10, 33}) {
        CAPTURE(n);
        CAPTURE(k);
        CAPTURE(m);
        const Layer layer(n, k, m);
        CheckForward(layer);
        CheckGradient(layer);
      }
    }
  }
}

TEST_CASE("linear: layers of few outputs agree with ref") {
  for (int64_t m = 1; m <= 18; ++m) {
    for (const int64_t k : {64, 65, 79, 784}) {
      CAPTURE(m);
      CAPTURE(k);
      const Layer layer(m % 2 == 0 ? 100 : 31, k, m);
      CheckForward(layer);
      CheckGradient(layer);
    }
  }
}

// A layer whose inputs are rows of a table of bytes, out of order and one of them twice.
struct ByteLayer : Layer {
  ByteLayer(int64_t count, int64_t inputs, int64_t outputs)
      : Layer(count, inputs, outputs), table(static_cast<size_t>((count + 3) * inputs)), rows(count) {
    const CounterRandom random(5);
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(random.Below(i, 256));
    for (int64_t i = 0; i < n; ++i) rows[i] = i == 0 ? 2 : n - i;
    for (int64_t i = 0; i < n * k; ++i) x64[i] = table[static_cast<size_t>(rows[i / k] * k + i % k)] / 255.0;
  }
  ByteRows bytes() const { return {{table.data(), n + 3, k}, rows}; }
  std::vector<uint8_t> table;
  std::vector<int64_t> rows;
};

TEST_CASE("linear: layers on rows of bytes agree with ref") {
  Stream stream(Backend::kCpu);
  for (const int64_t n : kOddSizes) {
    for (const int64_t k : {1, 7, 8, 31, 64, 784}) {
      for (const int64_t m : {1, 2, 5, 6, 10, 16}) {
        CAPTURE(n);
        CAPTURE(k);
        CAPTURE(m);
        const ByteLayer layer(n, k, m);
        Guarded<float> out(n * m), dw(k * m), db(m);
        std::vector<double> expected(n * m), expected_dw(k * m), expected_db(m);
        LinearForward(stream, layer.bytes(), {layer.w.data(), k, m}, layer.b, out.matrix(n, m));
        ref::LinearForward({layer.x64.data(), n, k}, {layer.w64.data(), k, m}, layer.b64,
                           {expected.data(), n, m});
        LinearGradient(stream, layer.bytes(), {layer.dout.data(), n, m}, dw.matrix(k, m), db.span());
        ref::LinearGradient({layer.x64.data(), n, k}, {layer.dout64.data(), n, m}, {expected_dw.data(), k, m},
                            expected_db);
        CHECK(LargestError(out.span(), expected, 1) <= SumTolerance(k));
        CHECK(LargestError(dw.span(), expected_dw, 1) <= SumTolerance(n));
        CHECK(LargestError(db.span(), expected_db, 1) <= SumTolerance(n));
        CHECK(out.GuardsIntact());
        CHECK(dw.GuardsIntact());
        CHECK(db.GuardsIntact());
      }
    }
  }
}

TEST_CASE("linear: the gradient of inputs agrees with ref over odd shapes") {
  Stream stream(Backend::kCpu);
  for (const int64_t n : kOddSizes) {
    for (const int64_t k : kOddSizes) {
      for (const int64_t m : {1, 2, 10, 33}) {
        const Layer layer(n, k, m);
        Guarded<float> dx(n * k);
        std::vector<double> expected(n * k);
        LinearInputGradient(stream, {layer.dout.data(), n, m}, {layer.w.data(), k, m}, dx.matrix(n, k));
        ref::LinearInputGradient({layer.dout64.data(), n, m}, {layer.w64.data(), k, m},
                                 {expected.data(), n, k});
        CHECK(LargestError(dx.span(), expected, 1) <= SumTolerance(m));
        CHECK(dx.GuardsIntact());
      }
    }
  }
}

TEST_CASE("linear: the gradient of no rows is zero") {
  Stream stream(Backend::kCpu);
  Guarded<float> dw(4 * 3), db(3);
  LinearGradient(stream, {nullptr, 0, 4}, {nullptr, 0, 3}, dw.matrix(4, 3), db.span());
  for (const float value : dw.span()) CHECK(value == 0);
  for (const float value : db.span()) CHECK(value == 0);
}

// L = sum of dout * (x w + b) is linear in w and b, so that a finite difference of any width is exact but
// for rounding.
template <typename T, typename Loss>
void CheckDifferences(std::vector<T>* parameters, Span<const T> gradient, Loss loss, double tolerance) {
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

TEST_CASE("linear: cpu's gradient is that of finite differences, with loops and with OpenBLAS") {
  for (const int64_t n : {2, 33}) {
    Layer layer(n, 31, 3);
    Stream stream(Backend::kCpu);
    std::vector<float> out(n * 3), dw(31 * 3), db(3);
    const auto loss = [&] {
      LinearForward(stream, {layer.x.data(), n, 31}, {layer.w.data(), 31, 3}, layer.b, {out.data(), n, 3});
      double sum = 0;
      for (size_t i = 0; i < out.size(); ++i) sum += static_cast<double>(layer.dout[i]) * out[i];
      return sum;
    };
    LinearGradient(stream, {layer.x.data(), n, 31}, {layer.dout.data(), n, 3}, {dw.data(), 31, 3}, db);
    // 33 outputs of magnitude 10 to 30, each rounded to 2^-20 or so.
    CheckDifferences<float>(&layer.w, dw, loss, 1e-5);
    CheckDifferences<float>(&layer.b, db, loss, 1e-5);
  }
}

TEST_CASE("linear: products are right after the number of threads went down and up") {
  for (const int threads : {1, 2, 1}) {
    SetThreads(threads);
    const Layer layer(100, 784, 10);
    CheckForward(layer);
  }
}

}  // namespace
}  // namespace dtrain::gpu
