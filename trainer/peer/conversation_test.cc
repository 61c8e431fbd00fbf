#include "trainer/peer/conversation.h"

#include <doctest/doctest.h>

#include <vector>

#include "trainer/testing/fake_channel.h"

namespace dtrain {
namespace {

ClusterConfig OnePs() {
  ClusterConfig cluster;
  cluster.ps = {"127.0.0.1:10001"};
  return cluster;
}

// A conversation with one ps, which the test plays.
struct Link : Conversation {
  Link(FakeChannel& channel, size_t max_open) : Conversation(channel, OnePs(), {Role::kPs, 0}, max_open) {}
};

net::Message Pull(uint64_t request) {
  net::Encoder encoder;
  return encoder.Finish({1, 0, request}, wire::CreatePull(encoder.Begin()));
}

void SendPulls(Conversation& link, int count) {
  for (int i = 0; i < count; ++i) {
    const uint64_t request = link.NextRequest();
    link.Send(request, Pull(request));
  }
}

// The numbers of the requests sent since the last call.
std::vector<uint64_t> TakeSent(FakeChannel& channel) {
  std::vector<uint64_t> requests;
  for (const FakeChannel::Sent& sent : channel.sent) requests.push_back(sent.envelope().request());
  channel.sent.clear();
  return requests;
}

using Requests = std::vector<uint64_t>;

TEST_CASE("conversation: an unanswered request is sent again after a second, then less often") {
  FakeChannel channel;
  Link link(channel, 2);
  SendPulls(link, 1);
  CHECK(TakeSent(channel) == Requests{1});
  const TimePoint start = Clock::now();
  link.OnQuiet(start);
  link.OnQuiet(start + milliseconds(999));
  CHECK(TakeSent(channel).empty());
  link.OnQuiet(start + milliseconds(1001));
  CHECK(TakeSent(channel) == Requests{1});
  link.OnQuiet(start + milliseconds(2500));
  CHECK(TakeSent(channel).empty());
  link.OnQuiet(start + milliseconds(3100));
  CHECK(TakeSent(channel) == Requests{1});
  CHECK(link.Overdue(start + milliseconds(3100), 3099));
  CHECK_FALSE(link.Overdue(start + milliseconds(3100), 3100));
}

// Calls OnQuiet() every 100 ms from `begin` to `end`, as a wait does.
void StayQuiet(Conversation& link, TimePoint begin, TimePoint end) {
  for (TimePoint now = begin; now <= end; now += milliseconds(100)) link.OnQuiet(now);
}

TEST_CASE("conversation: several lost requests are sent again one by one, at the pace of their answers") {
  FakeChannel channel;
  Link link(channel, 4);
  SendPulls(link, 3);
  TakeSent(channel);
  TimePoint now = Clock::now();
  StayQuiet(link, now, now + milliseconds(1000));
  CHECK(TakeSent(channel) == Requests{1});
  SendPulls(link, 1);  // after the repeat, so not among the lost
  CHECK(TakeSent(channel) == Requests{4});
  for (const uint64_t lost : {2, 3}) {  // each answer comes at once
    CHECK(link.Answered(lost - 1));
    CHECK(TakeSent(channel).empty());
    now += milliseconds(2000);
    StayQuiet(link, now, now + milliseconds(100));
    CHECK(TakeSent(channel) == Requests{lost});
  }
  CHECK(link.Answered(3));
  now += milliseconds(2000);
  StayQuiet(link, now, now + milliseconds(1900));
  CHECK(TakeSent(channel).empty());
  CHECK(link.Answered(4));
}

TEST_CASE("conversation: what answers slowly is left alone once its pace is known") {
  FakeChannel channel;
  Link link(channel, 16);
  SendPulls(link, 16);
  TakeSent(channel);
  TimePoint now = Clock::now();
  for (uint64_t request = 1; request <= 16; ++request) {
    StayQuiet(link, now, now + milliseconds(1300));
    now += milliseconds(1400);
    CHECK(link.Answered(request));
  }
  CHECK(TakeSent(channel).size() <= 3);
}

TEST_CASE("conversation: an answer given twice ends the repeats, and later ones wait for longer") {
  FakeChannel channel;
  Link link(channel, 4);
  SendPulls(link, 4);
  TakeSent(channel);
  const TimePoint start = Clock::now();
  StayQuiet(link, start, start + milliseconds(1000));
  CHECK(link.Answered(1));
  CHECK(TakeSent(channel) == Requests{1});
  CHECK_FALSE(link.Answered(1));  // both copies were answered, so nothing had been lost
  StayQuiet(link, start + milliseconds(1100), start + milliseconds(5000));
  CHECK(TakeSent(channel).empty());
  StayQuiet(link, start + milliseconds(5100), start + milliseconds(5200));
  CHECK(TakeSent(channel) == Requests{2});
}

TEST_CASE("conversation: an answer given twice shows that the other end lives") {
  FakeChannel channel;
  Link link(channel, 4);
  SendPulls(link, 2);
  const TimePoint start = Clock::now();
  CHECK(link.Answered(1));
  StayQuiet(link, start, start + milliseconds(700));
  CHECK(link.Overdue(start + milliseconds(700), 600));
  CHECK_FALSE(link.Answered(1));
  CHECK_FALSE(link.Overdue(start + milliseconds(700), 0));
}

TEST_CASE("conversation: requests that the channel could not take go out, in order, as soon as it can") {
  FakeChannel channel;
  channel.full = true;
  Link link(channel, 3);
  SendPulls(link, 2);
  CHECK(TakeSent(channel).empty());
  channel.full = false;
  link.OnQuiet(Clock::now());
  CHECK(TakeSent(channel) == Requests{1, 2});
  channel.full = true;
  SendPulls(link, 1);
  channel.full = false;
  CHECK(link.Answered(1));
  CHECK(TakeSent(channel) == Requests{3});
}

TEST_CASE("conversation: on a new connection all open requests are sent again at once, in order, and once") {
  FakeChannel channel;
  channel.connections = 1;
  Link link(channel, 4);
  SendPulls(link, 3);
  CHECK(link.Answered(1));
  const TimePoint start = Clock::now();
  link.OnQuiet(start);
  CHECK(TakeSent(channel) == Requests{1, 2, 3});
  channel.connections = 2;
  StayQuiet(link, start + milliseconds(100), start + milliseconds(900));
  CHECK(TakeSent(channel) == Requests{2, 3});
  // The next repeat is due to silence again.
  StayQuiet(link, start + milliseconds(1000), start + milliseconds(1200));
  CHECK(TakeSent(channel) == Requests{2});
}

TEST_CASE(
    "conversation: for another process of the peer all open requests are sent again at once, and once") {
  FakeChannel channel;
  Link link(channel, 4);
  SendPulls(link, 3);
  CHECK(link.Answered(1));
  TakeSent(channel);
  link.SendAgain();
  CHECK(TakeSent(channel) == Requests{2, 3});
  const TimePoint start = Clock::now();
  StayQuiet(link, start, start + milliseconds(900));
  CHECK(TakeSent(channel).empty());
  CHECK(link.Answered(2));
  CHECK(link.Answered(3));
  link.SendAgain();
  CHECK(TakeSent(channel).empty());
}

TEST_CASE("conversation: the time in which a peer is away is no time that it takes to answer") {
  FakeChannel channel;
  Link link(channel, 1);
  SendPulls(link, 1);
  const TimePoint start = Clock::now();
  StayQuiet(link, start, start + milliseconds(2000));
  CHECK(link.Overdue(start + milliseconds(2000), 1000));
  link.CountFrom(start + milliseconds(2000));
  CHECK_FALSE(link.Overdue(start + milliseconds(3000), 1000));
  CHECK(link.Overdue(start + milliseconds(3001), 1000));
}

TEST_CASE("conversation: after Clear nothing is open, and nothing of it is sent again") {
  FakeChannel channel;
  Link link(channel, 3);
  SendPulls(link, 3);
  TakeSent(channel);
  link.Clear();
  CHECK(link.open() == 0);
  link.OnQuiet(Clock::now());
  link.OnQuiet(Clock::now() + milliseconds(5000));
  SendPulls(link, 1);
  CHECK(TakeSent(channel) == Requests{4});
}

TEST_CASE("conversation: an answer given twice closes one request only") {
  FakeChannel channel;
  Link link(channel, 2);
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
