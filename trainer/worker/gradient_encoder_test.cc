#include "trainer/worker/gradient_encoder.h"

#include <doctest/doctest.h>

#include <vector>

namespace dtrain {
namespace {

constexpr int64_t kSize = 2 * net::kGroupValues;

Layout FlatLayout() {
  Layout layout;
  layout.size = kSize;
  return layout;
}

net::LentBuffer Filled(float value) {
  net::LentBuffer buffer(kSize * sizeof(float));
  std::fill_n(buffer.floats(), kSize, value);
  return buffer;
}

void Release(const net::LentBytes& bytes) { bytes.release(const_cast<void*>(bytes.data), bytes.context); }

TEST_CASE("gradient encoder: without compression a block is lent where it lies, and nothing is spared") {
  const Layout layout = FlatLayout();
  GradientEncoder encoder(net::Compression::kNone, layout, 0);
  const net::LentBuffer gradient = Filled(1);
  const net::LentBytes block = encoder.Block(gradient, {256, 512});
  CHECK(block.data == gradient.floats() + 256);
  CHECK(block.size == 256 * sizeof(float));
  CHECK(encoder.bytes_saved() == 0);
  Release(block);
}

TEST_CASE("gradient encoder: what a block leaves out goes with the same block of the next, until forgotten") {
  const Layout layout = FlatLayout();
  GradientEncoder encoder(net::Compression::kTopk, layout, 0);
  const auto sent = [&](const net::LentBuffer& gradient, Range block) {
    const net::LentBytes bytes = encoder.Block(gradient, block);
    std::vector<float> values(static_cast<size_t>(block.size()));
    REQUIRE(net::Decompress(net::Compression::kTopk, static_cast<const std::byte*>(bytes.data), bytes.size,
                            block.size(), values.data()));
    Release(bytes);
    return values;
  };
  const auto sixteen_from = [](size_t first) {
    std::vector<float> values(net::kGroupValues);
    std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(first), net::kTopValues, 1.0f);
    return values;
  };
  const net::LentBuffer ones = Filled(1), zeros = Filled(0);
  CHECK(sent(ones, {0, 256}) == sixteen_from(0));
  CHECK(sent(zeros, {256, 512}) == std::vector<float>(256));
  CHECK(sent(zeros, {0, 256}) == sixteen_from(16));
  encoder.Forget();
  CHECK(sent(zeros, {0, 256}) == std::vector<float>(256));
  CHECK(encoder.bytes_saved() ==
        4 * (256 * sizeof(float) - net::CompressedBytes(net::Compression::kTopk, 256)));
}

TEST_CASE("gradient encoder: a compressed block keeps its bytes while a transport has them") {
  const Layout layout = FlatLayout();
  GradientEncoder encoder(net::Compression::kBf16, layout, 0);
  const net::LentBytes first = encoder.Block(Filled(1), {0, 256});
  const net::LentBytes second = encoder.Block(Filled(2), {0, 256});
  CHECK(first.data != second.data);
  std::vector<float> values(256);
  net::Decompress(net::Compression::kBf16, static_cast<const std::byte*>(first.data), first.size, 256,
                  values.data());
  CHECK(values == std::vector<float>(256, 1));
  Release(first);
  Release(second);
}

}  // namespace
}  // namespace dtrain
