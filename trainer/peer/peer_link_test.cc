#include "trainer/peer/peer_link.h"

#include <doctest/doctest.h>

#include "trainer/testing/fake_channel.h"

namespace dtrain {
namespace {

constexpr net::NodeId kPs = 0x1122334455667700;

net::Message Pull(uint64_t request) {
  net::Encoder encoder;
  return encoder.Finish({1, 0, request}, wire::CreatePull(encoder.Begin()));
}

TEST_CASE("link: an unanswered request is sent again after a second, then less often") {
  FakeChannel channel;
  PeerLink link(channel, kPs, "ps 0", 2);
  const uint64_t request = link.NextRequest();
  link.Send(request, Pull(request));
  REQUIRE(channel.sent.size() == 1);
  const TimePoint start = Clock::now();
  link.OnQuiet(start);
  link.OnQuiet(start + milliseconds(999));
  CHECK(channel.sent.size() == 1);
  link.OnQuiet(start + milliseconds(1001));
  CHECK(channel.sent.size() == 2);
  link.OnQuiet(start + milliseconds(2500));
  CHECK(channel.sent.size() == 2);
  link.OnQuiet(start + milliseconds(3100));
  REQUIRE(channel.sent.size() == 3);
  CHECK(channel.sent[2].envelope().request() == request);
  CHECK(link.WaitedSeconds(start + milliseconds(3100)) == doctest::Approx(3.1));
}

TEST_CASE("link: open requests are repeated in their order") {
  FakeChannel channel;
  PeerLink link(channel, kPs, "ps 0", 3);
  for (int i = 0; i < 3; ++i) {
    const uint64_t request = link.NextRequest();
    link.Send(request, Pull(request));
  }
  channel.sent.clear();
  link.Repeat();
  REQUIRE(channel.sent.size() == 3);
  for (uint64_t i = 0; i < 3; ++i) CHECK(channel.sent[i].envelope().request() == i + 1);
}

TEST_CASE("link: a request that the channel could not take goes out with a repeat") {
  FakeChannel channel;
  channel.full = true;
  PeerLink link(channel, kPs, "ps 0", 1);
  const uint64_t request = link.NextRequest();
  link.Send(request, Pull(request));
  CHECK(channel.sent.empty());
  channel.full = false;
  link.Repeat();
  CHECK(channel.sent.size() == 1);
}

TEST_CASE("link: an answer given twice closes one request only") {
  FakeChannel channel;
  PeerLink link(channel, kPs, "ps 0", 2);
  for (int i = 0; i < 2; ++i) {
    const uint64_t request = link.NextRequest();
    link.Send(request, Pull(request));
  }
  CHECK(link.Answered(1));
  CHECK_FALSE(link.Answered(1));
  CHECK(link.open() == 1);
  CHECK_FALSE(link.Answered(7));
  CHECK(link.Answered(2));
  CHECK(link.open() == 0);
}

}  // namespace
}  // namespace dtrain
