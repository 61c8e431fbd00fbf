// FloodChannel: a FakeChannel of a peer that sends without end: when the test's own messages are taken,
// `flood` comes again and again. Throws std::logic_error for a loop that takes kEndless of them. Owner and
// thread: the test's.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "trainer/testing/fake_channel.h"

namespace dtrain {

class FloodChannel : public FakeChannel {
 public:
  static constexpr int64_t kEndless = 20'000'000;

  net::ReceiveResult Receive(TimePoint deadline, net::NodeId* from, net::Message* message) override {
    if (!incoming.empty()) return FakeChannel::Receive(deadline, from, message);
    if (flood.message.header.empty()) return net::ReceiveResult::kTimeout;
    if (++taken > kEndless) throw std::logic_error("a loop takes messages without end");
    *from = flood.to;
    *message = {net::Frame::Copy(flood.message.header.data(), flood.message.header.size()), net::Frame()};
    return net::ReceiveResult::kMessage;
  }

  Sent flood{};  // its sender is in `to`
  int64_t taken = 0;
};

// FloodTransport: gives out FloodChannels that stay silent until the test sets their flood.
class FloodTransport : public net::Transport {
 public:
  std::unique_ptr<net::Channel> NewChannel() override {
    auto made = std::make_unique<FloodChannel>();
    channels.push_back(made.get());
    return made;
  }
  std::vector<FloodChannel*> channels;
};

}  // namespace dtrain
