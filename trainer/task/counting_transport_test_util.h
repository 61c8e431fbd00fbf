// CountingTransport: a task's transport that counts the messages which the task sends, by kind, with their
// bytes. The kind of an answer includes the question: "Weights to Push".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "net/codec.h"

namespace dtrain {

struct Sent {
  int64_t messages = 0;
  int64_t header_bytes = 0;
  int64_t payload_bytes = 0;

  Sent& operator+=(const Sent& other) {
    messages += other.messages;
    header_bytes += other.header_bytes;
    payload_bytes += other.payload_bytes;
    return *this;
  }
  friend bool operator==(const Sent& a, const Sent& b) {
    return std::tie(a.messages, a.header_bytes, a.payload_bytes) ==
           std::tie(b.messages, b.header_bytes, b.payload_bytes);
  }
};

// The messages that the tasks of one run have sent. Thread: any.
class Count {
 public:
  // `who`: "worker" for all workers, "ps 0" for one ps.
  void Add(const std::string& who, const std::string& kind, const Sent& more) {
    const std::lock_guard<std::mutex> hold(mutex_);
    sent_[who + ": " + kind] += more;
  }
  void AddRepeat() {
    const std::lock_guard<std::mutex> hold(mutex_);
    ++repeats_;
  }
  // REQUIRES: the run has ended.
  const std::map<std::string, Sent>& sent() const { return sent_; }
  // The number of repeated messages, as happen when a task was not scheduled for a second.
  int64_t repeats() const { return repeats_; }

 private:
  std::mutex mutex_;
  std::map<std::string, Sent> sent_;
  int64_t repeats_ = 0;
};

// The header bytes for the time that a Weights was held back, which differs from run to run.
inline int64_t BytesOfTheTimeHeld(const wire::Envelope& envelope, const wire::Weights& weights) {
  const auto header_bytes = [&](uint32_t held_us) {
    const size_t values = weights.values() == nullptr ? 0 : weights.values()->size();
    const net::LentBytes inside{values == 0 ? nullptr : weights.values()->data(), values, nullptr, nullptr};
    const net::Message message = net::Encoder().Weights(
        {envelope.run_id(), envelope.run_epoch(), envelope.request()}, weights.version(),
        weights.global_step(), weights.steps(), weights.checksum(), inside, held_us);
    return static_cast<int64_t>(message.header.size());
  };
  return header_bytes(weights.held_us()) - header_bytes(0);
}

class CountingChannel : public net::Channel {
 public:
  CountingChannel(std::unique_ptr<net::Channel> channel, std::string who, Count& count)
      : channel_(std::move(channel)), who_(std::move(who)), count_(count) {}

  std::string Bind(const std::string& address) override { return channel_->Bind(address); }
  std::string BindDescriptor(int fd) override { return channel_->BindDescriptor(fd); }
  void Connect(net::NodeId id, const std::string& address) override { channel_->Connect(id, address); }
  void Disconnect(net::NodeId id) override { channel_->Disconnect(id); }
  net::SendResult Send(net::NodeId peer, net::Message& message) override {
    const Noted noted = Note(peer, message);  // the receiver may release it before Send() returns
    const net::SendResult result = channel_->Send(peer, message);
    if (result != net::SendResult::kSent) return result;
    count_.Add(who_, noted.kind, noted.bytes);
    if (noted.request != 0 && !sent_.emplace(peer, noted.request, noted.body).second) count_.AddRepeat();
    return result;
  }
  net::ReceiveResult Receive(TimePoint deadline, net::NodeId* from, net::Message* message) override {
    const net::ReceiveResult result = channel_->Receive(deadline, from, message);
    if (result != net::ReceiveResult::kMessage) return result;
    const wire::Envelope* envelope = net::Decode(*message);
    if (envelope->request() != 0) asked_[{*from, envelope->request()}] = envelope->body_type();
    return result;
  }
  net::ChannelStats stats() const override { return channel_->stats(); }
  uint64_t Connections(net::NodeId id) const override { return channel_->Connections(id); }

 private:
  struct Noted {
    std::string kind;
    uint64_t request = 0;
    wire::Body body = wire::Body::NONE;
    Sent bytes;
  };

  Noted Note(net::NodeId peer, const net::Message& message) const {
    const wire::Envelope& envelope = *net::Decode(message);
    Noted noted{wire::EnumNameBody(envelope.body_type()), envelope.request(), envelope.body_type(), {}};
    const auto question = asked_.find({peer, noted.request});
    if (question != asked_.end()) noted.kind += std::string(" to ") + wire::EnumNameBody(question->second);
    const wire::Weights* weights = envelope.body_as_Weights();
    const int64_t too_many = weights == nullptr ? 0 : BytesOfTheTimeHeld(envelope, *weights);
    noted.bytes = {1, static_cast<int64_t>(message.header.size()) - too_many,
                   static_cast<int64_t>(message.payload.size())};
    return noted;
  }

  const std::unique_ptr<net::Channel> channel_;
  const std::string who_;
  Count& count_;
  std::map<std::pair<net::NodeId, uint64_t>, wire::Body> asked_;
  std::set<std::tuple<net::NodeId, uint64_t, wire::Body>> sent_;
};

class CountingTransport : public net::Transport {
 public:
  CountingTransport(net::Transport& transport, std::string who, Count& count)
      : transport_(transport), who_(std::move(who)), count_(count) {}
  std::unique_ptr<net::Channel> NewChannel() override {
    return std::make_unique<CountingChannel>(transport_.NewChannel(), who_, count_);
  }

 private:
  net::Transport& transport_;
  const std::string who_;
  Count& count_;
};

}  // namespace dtrain
