#include "trainer/worker/worker_model.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("gradient buffers: a buffer that is lent is not given out") {
  GradientBuffers buffers(8, 1);
  const net::LentBuffer& first = buffers.Free();
  const net::LentBuffer::Hold hold = first.KeepLent();
  for (int i = 0; i < 3; ++i) CHECK(&buffers.Free() != &first);
  CHECK(buffers.count() == 2);
}

TEST_CASE("gradient buffers: there is one more where all are lent, and the others stay where they are") {
  GradientBuffers buffers(8, 1);
  const net::LentBuffer& first = buffers.Free();
  const net::LentBuffer::Hold hold = first.KeepLent();
  const net::LentBuffer& second = buffers.Free();
  net::LentBuffer::Hold other = second.KeepLent();
  const net::LentBuffer& third = buffers.Free();
  CHECK(&third != &first);
  CHECK(&third != &second);
  CHECK(third.bytes() == 8);
  CHECK(first.lent());
  other.reset();
  CHECK(&buffers.Free() == &second);
  CHECK(buffers.count() == 3);
}

}  // namespace
}  // namespace dtrain
