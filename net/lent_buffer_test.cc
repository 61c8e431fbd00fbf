#include "net/lent_buffer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace dtrain::net {

TEST_CASE("lent buffer: is zeroed, aligned and not lent at first") {
  const LentBuffer buffer(1000);
  CHECK(buffer.bytes() == 1000);
  CHECK(reinterpret_cast<uintptr_t>(buffer.floats()) % 64 == 0);
  CHECK_FALSE(buffer.lent());
  for (int i = 0; i < 250; ++i) CHECK(buffer.floats()[i] == 0.0f);
}

TEST_CASE("lent buffer: is lent until the last frame over it has ended") {
  const LentBuffer buffer(1000);
  const auto lend = [&](size_t offset, size_t size) {
    const LentBytes bytes = buffer.Lend(offset, size);
    return Frame::Lend(bytes.data, bytes.size, bytes.release, bytes.context);
  };
  Frame first = lend(0, 400);
  Frame second = lend(400, 600);
  CHECK(second.data() == reinterpret_cast<const std::byte*>(buffer.floats()) + 400);
  first = Frame();
  CHECK(buffer.lent());
  second = Frame();
  CHECK_FALSE(buffer.lent());
}

TEST_CASE("lent buffer: its bytes outlive it while a frame is over them") {
  Frame frame;
  {
    LentBuffer buffer(8);
    buffer.floats()[1] = 2.5f;
    const LentBytes bytes = buffer.Lend(0, 8);
    frame = Frame::Lend(bytes.data, bytes.size, bytes.release, bytes.context);
    const LentBuffer moved = std::move(buffer);
  }
  CHECK(reinterpret_cast<const float*>(frame.data())[1] == 2.5f);
}

TEST_CASE("lent buffer: one that is shared is lent until the other owner has ended, whose bytes outlive it") {
  LentBuffer buffer(8);
  buffer.floats()[1] = 2.5f;
  {
    const LentBuffer other = buffer.Share();
    CHECK(other.floats() == buffer.floats());
    CHECK(buffer.lent());
  }
  CHECK_FALSE(buffer.lent());
  const LentBuffer other = buffer.Share();
  buffer = LentBuffer(8);
  CHECK_FALSE(other.lent());
  CHECK(other.floats()[1] == 2.5f);
}

TEST_CASE("lent buffer: several of them are apart and aligned, and each may be the last one") {
  for (const size_t count : {1, 3, 5}) {
    std::vector<LentBuffer> buffers = LentBuffer::AllocateMany(count, 1000000);
    REQUIRE(buffers.size() == count);
    for (size_t i = 0; i < count; ++i) {
      CHECK(buffers[i].bytes() == 1000000);
      CHECK(reinterpret_cast<uintptr_t>(buffers[i].floats()) % 64 == 0);
      std::fill_n(buffers[i].floats(), 250000, static_cast<float>(i));
    }
    const LentBytes bytes = buffers.back().Lend(4, 8);
    const Frame frame = Frame::Lend(bytes.data, bytes.size, bytes.release, bytes.context);
    CHECK(buffers.back().lent());
    for (size_t i = 0; i < count; ++i) {
      CHECK(buffers[i].floats()[0] == static_cast<float>(i));
      CHECK(buffers[i].floats()[249999] == static_cast<float>(i));
    }
    buffers.clear();
    CHECK(reinterpret_cast<const float*>(frame.data())[1] == static_cast<float>(count - 1));
  }
  CHECK(LentBuffer::AllocateMany(0, 8).empty());
}

TEST_CASE("lent buffers: a buffer that is lent is not given out") {
  LentBuffers buffers(2, 8);
  const LentBuffer& first = buffers.Free(8);
  const LentBuffer::Hold hold = first.KeepLent();
  for (int i = 0; i < 3; ++i) CHECK(&buffers.Free(8) != &first);
  CHECK(buffers.count() == 2);
}

TEST_CASE("lent buffers: there is one more where all are lent, and the others stay where they are") {
  LentBuffers buffers(2, 8);
  const LentBuffer& first = buffers.Free(8);
  const LentBuffer::Hold hold = first.KeepLent();
  const LentBuffer& second = buffers.Free(8);
  LentBuffer::Hold other = second.KeepLent();
  const LentBuffer& third = buffers.Free(8);
  CHECK(&third != &first);
  CHECK(&third != &second);
  CHECK(third.bytes() == 8);
  CHECK(first.lent());
  other.reset();
  CHECK(&buffers.Free(8) == &second);
  CHECK(buffers.count() == 3);
}

TEST_CASE("lent buffers: one that is too small grows while it is not lent") {
  LentBuffers buffers(1, 8);
  const LentBuffer& buffer = buffers.Free(8);
  CHECK(buffers.Free(100).bytes() >= 100);
  CHECK(buffer.bytes() >= 100);
  CHECK(buffers.count() == 1);
}

}  // namespace dtrain::net
