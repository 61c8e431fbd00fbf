#include "trainer/ps/outbox.h"

#include <doctest/doctest.h>

#include <vector>

#include "trainer/testing/fake_channel.h"

namespace dtrain {
namespace {

void SendWeights(Outbox& outbox, net::NodeId to, uint64_t request) {
  static const float kValue = 1;
  outbox.Weights(to, request, {1}, {&kValue, sizeof kValue, nullptr, nullptr});
}

std::vector<uint64_t> Requests(const FakeChannel& channel, net::NodeId to) {
  std::vector<uint64_t> requests;
  for (const FakeChannel::Sent& sent : channel.sent) {
    if (sent.to == to) requests.push_back(sent.envelope().request());
  }
  return requests;
}

TEST_CASE("outbox: weights for a peer that is full go out later, in their order") {
  FakeChannel channel;
  Outbox outbox(channel, 3);
  SendWeights(outbox, 2, 1);
  channel.full = true;
  SendWeights(outbox, 2, 2);
  SendWeights(outbox, 4, 7);
  SendWeights(outbox, 2, 3);
  outbox.SendLate();
  CHECK(channel.sent.size() == 1);
  channel.full = false;
  SendWeights(outbox, 2, 4);  // it must not overtake those that wait
  CHECK(outbox.late());
  outbox.SendLate();
  CHECK_FALSE(outbox.late());
  CHECK(Requests(channel, 2) == std::vector<uint64_t>{1, 2, 3, 4});
  CHECK(Requests(channel, 4) == std::vector<uint64_t>{7});
}

TEST_CASE("outbox: what waits for a peer that is gone, or has left, is dropped") {
  FakeChannel channel;
  Outbox outbox(channel, 3);
  channel.full = true;
  SendWeights(outbox, 2, 1);
  SendWeights(outbox, 4, 1);
  SendWeights(outbox, 6, 1);
  channel.full = false;
  channel.gone.insert(2);
  outbox.DropLate(4);
  outbox.SendLate();
  CHECK_FALSE(outbox.late());
  CHECK(channel.sent.size() == 1);
  CHECK(channel.sent[0].to == 6);
}

TEST_CASE(
    "outbox: for a peer that asks on and does not read, no more answers wait than it may have requests") {
  FakeChannel channel;
  Outbox outbox(channel, 3);
  channel.full = true;
  for (uint64_t request = 1; request <= 1000; ++request) SendWeights(outbox, 2, request);
  SendWeights(outbox, 4, 1);
  CHECK(outbox.TakeOverfull() == 2);
  CHECK(outbox.TakeOverfull() == 0);
  channel.full = false;
  outbox.SendLate();
  CHECK(Requests(channel, 2) == std::vector<uint64_t>{1, 2, 3});
  CHECK(Requests(channel, 4) == std::vector<uint64_t>{1});
  SendWeights(outbox, 2, 4);
  CHECK(Requests(channel, 2).back() == 4);
  channel.full = true;
  for (uint64_t request = 5; request <= 9; ++request) SendWeights(outbox, 2, request);
  CHECK(outbox.TakeOverfull() == 2);
}

TEST_CASE("outbox: what waits for a later record leaves with the one that is named next, in its order") {
  FakeChannel channel;
  Outbox outbox(channel, 3);
  outbox.WaitForRecord(4);
  outbox.Ack(2, 1);
  outbox.WaitForLater();
  CHECK_FALSE(outbox.owes_record());
  outbox.Ack(2, 2);
  CHECK(outbox.owes_record());
  outbox.Release(4);
  CHECK(Requests(channel, 2) == std::vector<uint64_t>{1});
  outbox.WaitForRecord(6);
  CHECK_FALSE(outbox.owes_record());
  outbox.WaitForLater();
  outbox.Ack(2, 3);
  outbox.Release(6);
  CHECK(Requests(channel, 2) == std::vector<uint64_t>{1, 2});
  outbox.Send(2, 9, [](auto& builder) { return wire::CreateAck(builder); });
  CHECK(Requests(channel, 2).back() == 9);
  outbox.WaitForRecord(6);  // this turn has made none
  CHECK(Requests(channel, 2) == std::vector<uint64_t>{1, 2, 9, 3});
}

}  // namespace
}  // namespace dtrain
