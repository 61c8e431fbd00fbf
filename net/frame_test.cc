#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "net/channel.h"
#include "net/channel_test_util.h"

namespace dtrain::net {
namespace {

void Count(void* /*data*/, void* context) { ++*static_cast<int*>(context); }

}  // namespace

TEST_CASE("frame: a new one and one that was moved from are empty") {
  Frame frame = Frame::Copy("abc", 3);
  const Frame other = std::move(frame);
  CHECK(Frame().empty());
  CHECK(frame.empty());  // NOLINT(bugprone-use-after-move): the promise under test
  CHECK(other.text() == "abc");
}

TEST_CASE("frame: a copy owns its bytes") {
  std::string bytes(5000, 'a');
  const Frame frame = Frame::Copy(bytes.data(), bytes.size());
  bytes.assign(bytes.size(), 'b');
  CHECK(frame.text() == std::string(5000, 'a'));
}

TEST_CASE("frame: lent bytes are read in place and given back once, when the frame ends") {
  int released = 0;
  const std::string bytes = "lent";
  {
    Frame frame = Frame::Lend(bytes.data(), bytes.size(), Count, &released);
    CHECK(frame.data() == reinterpret_cast<const std::byte*>(bytes.data()));
    const Frame moved = std::move(frame);
    CHECK(released == 0);
  }
  CHECK(released == 1);
}

TEST_CASE("frame: lent bytes are given back when another frame takes the place") {
  int released = 0;
  Frame frame = Frame::Lend("x", 1, Count, &released);
  frame = Frame();
  CHECK(released == 1);
}

TEST_CASE("frame: nothing at all can be lent") {
  int released = 0;
  { const Frame frame = Frame::Lend(nullptr, 0, Count, &released); }
  CHECK(released == 1);
}

TEST_CASE("frame: shared bytes are given back after the last handle, in whichever order they end") {
  int released = 0;
  const std::string bytes(1000, 's');
  Frame first = Frame::Lend(bytes.data(), bytes.size(), Count, &released);
  Frame second = first.Share();
  Frame third = second.Share();
  CHECK(third.data() == first.data());
  first = Frame();
  third = Frame();
  CHECK(released == 0);
  CHECK(second.text() == bytes);
  second = Frame();
  CHECK(released == 1);
}

TEST_CASE("frame: bytes lent without a release function need none") {
  const std::string bytes(1000, 's');
  const Frame frame = Frame::Lend(bytes.data(), bytes.size(), nullptr, nullptr);
  CHECK(frame.Share().text() == bytes);
}

}  // namespace dtrain::net
