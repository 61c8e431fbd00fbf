#include "trainer/ps/update_rule.h"

#include <doctest/doctest.h>

#include <vector>

namespace dtrain {
namespace {

constexpr int64_t kValues = 512;

struct Weights {
  Weights() : buffer(kValues * sizeof(float)) {
    for (int64_t i = 0; i < kValues; ++i) buffer.floats()[i] = static_cast<float>(i) / 64;
  }
  net::LentBytes Lend() const { return buffer.Lend(0, kValues * sizeof(float)); }
  net::LentBuffer buffer;
};

void Release(const net::LentBytes& bytes) { bytes.release(const_cast<void*>(bytes.data), bytes.context); }

TEST_CASE("compressed weights: a version is compressed once, and its bytes stay while a transport has them") {
  const Weights weights;
  CompressedWeights compressed(net::Compression::kInt8, 2);
  const net::LentBytes first = compressed.Take(0, 7, weights.Lend());
  const net::LentBytes again = compressed.Take(0, 7, weights.Lend());
  const net::LentBytes other = compressed.Take(1, 7, weights.Lend());
  const net::LentBytes next = compressed.Take(0, 8, weights.Lend());
  CHECK_FALSE(weights.buffer.lent());
  CHECK(again.data == first.data);
  CHECK(other.data != first.data);
  CHECK(next.data != first.data);  // the one of version 7 is still out
  CHECK(first.size == 2 * 260);
  CHECK(compressed.bytes_saved() == 4 * (kValues * sizeof(float) - 520));
  for (const net::LentBytes& bytes : {first, again, other, next}) Release(bytes);
  const net::LentBytes later = compressed.Take(0, 9, weights.Lend());
  std::vector<float> values(kValues);
  CHECK(net::Decompress(compressed.form(), static_cast<const std::byte*>(later.data), later.size, kValues,
                        values.data()));
  CHECK(values[511] == doctest::Approx(511.0 / 64));
  Release(later);
}

TEST_CASE("compressed weights: rows are rounded anew for each answer, by its seed") {
  const Weights weights;
  CompressedWeights compressed(net::Compression::kInt8, 1);
  std::vector<std::vector<std::byte>> sent;
  for (const uint64_t seed : {5u, 5u, 6u}) {
    const net::LentBytes rows = compressed.TakeRows(weights.Lend(), seed);
    CHECK_FALSE(weights.buffer.lent());
    const auto* const data = static_cast<const std::byte*>(rows.data);
    sent.emplace_back(data, data + rows.size);
    Release(rows);
  }
  CHECK(sent[0].size() == 520);
  CHECK(sent[0] == sent[1]);
  CHECK(sent[0] != sent[2]);
  CHECK(compressed.bytes_saved() == 3 * (kValues * sizeof(float) - 520));
}

TEST_CASE("compressed weights: without transports that hold them no step takes another buffer") {
  const Weights weights;
  CompressedWeights compressed(net::Compression::kBf16, 1);
  const net::LentBytes first = compressed.Take(0, 1, weights.Lend());
  Release(first);
  for (uint64_t version = 2; version < 9; ++version) {
    const net::LentBytes next = compressed.Take(0, version, weights.Lend());
    CHECK(next.data == first.data);
    Release(next);
  }
}

}  // namespace
}  // namespace dtrain
