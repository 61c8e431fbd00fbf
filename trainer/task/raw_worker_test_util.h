// A ps on a thread, and workers that a test drives message by message, over the in-process transport.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "net/codec.h"
#include "net/inproc_transport.h"
#include "trainer/config/dump.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

namespace dtrain {

constexpr milliseconds kPatience{5000};

// A ps on its own thread.
class Ps {
 public:
  Ps(const Config& config, net::Transport& transport, int index = 0)
      : done_(std::async(std::launch::async, [config, &transport, index] {
          LogOptions options;
          options.level = LogLevel::kError;
          options.standard_error = false;
          Logger log("ps 0", options);
          return RunTask(config, {Role::kPs, index}, transport, log, {});
        })) {}
  RunSummary Wait() { return done_.get(); }
  bool waited() const { return !done_.valid(); }

 private:
  std::future<RunSummary> done_;
};

// A connection of a worker, or of another ps, to ps 0, driven message by message.
class RawWorker {
 public:
  // Connects task `index` to one ps.
  RawWorker(const Config& config, net::Transport& transport, int index, int ps = 0,
            wire::Role role = wire::Role::Worker)
      : config_(config),
        index_(index),
        ps_(ps),
        role_(role),
        node_(net::NewNodeId()),
        channel_(transport.NewChannel()) {
    channel_->Connect(node_, config.cluster.ps[static_cast<size_t>(ps)]);
  }

  template <typename Build>
  void Send(uint64_t request, Build&& build) {
    const TimePoint deadline = Clock::now() + kPatience;
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    net::Message message = encoder_.Finish({run_id_, 0, request}, build(builder));
    while (channel_->Send(node_, message) == net::SendResult::kFull && Clock::now() < deadline) {
    }
  }
  // `version`: in sync, that of the weights from which the gradient was computed.
  void SendPush(uint64_t request, const std::vector<float>& gradient, uint32_t block = 0,
                uint64_t version = 0) {
    net::Message message =
        encoder_.Push({run_id_, 0, request}, block, 1, 0,
                      {gradient.data(), gradient.size() * sizeof(float), nullptr, nullptr}, version);
    channel_->Send(node_, message);
  }
  void SendHello(uint32_t protocol = net::kProtocol, const Config* other = nullptr) {
    Send(0, [&](flatbuffers::FlatBufferBuilder& builder) {
      std::vector<flatbuffers::Offset<wire::Setting>> settings;
      for (const auto& [key, value] : RunSettings(other == nullptr ? config_ : *other)) {
        settings.push_back(
            wire::CreateSetting(builder, builder.CreateString(key), builder.CreateString(value)));
      }
      return wire::CreateHello(builder, protocol, role_, static_cast<uint32_t>(index_),
                               static_cast<uint32_t>(ps_), builder.CreateString("raw"),
                               builder.CreateString("test, pid 1"), builder.CreateString("0"),
                               builder.CreateVector(settings), incarnation_);
    });
  }
  // The next message, except those that only ask whether this connection is open; null: none comes.
  const wire::Envelope* Receive(milliseconds wait = kPatience) {
    const TimePoint deadline = Clock::now() + wait;
    net::NodeId from = 0;
    while (channel_->Receive(deadline, &from, &message_) == net::ReceiveResult::kMessage) {
      const wire::Envelope* envelope = net::Decode(message_);
      if (envelope == nullptr || envelope->body_type() != wire::Body::Heartbeat) return envelope;
    }
    return nullptr;
  }
  // The answer to a heartbeat; null: none comes. Drops other messages.
  const wire::Heartbeat* Beat() {
    Send(0, [](auto& builder) {
      return wire::CreateHeartbeat(builder, builder.CreateString("step"), 0, builder.CreateString(""));
    });
    const TimePoint deadline = Clock::now() + kPatience;
    net::NodeId from = 0;
    while (channel_->Receive(deadline, &from, &message_) == net::ReceiveResult::kMessage) {
      const wire::Envelope* envelope = net::Decode(message_);
      if (envelope != nullptr && envelope->body_as_Heartbeat()) return envelope->body_as_Heartbeat();
    }
    return nullptr;
  }
  template <typename Table>
  const Table* Expect() {
    const wire::Envelope* envelope = Receive();
    REQUIRE(envelope != nullptr);
    return envelope->body_as<Table>();
  }
  void Join() {
    SendHello();
    const wire::Envelope* welcome = Receive();
    REQUIRE(welcome != nullptr);
    REQUIRE(welcome->body_as_Welcome() != nullptr);
    run_id_ = welcome->run_id();
  }
  // Joins and starts as the only worker; uses request 3, the first.
  void Begin() {
    Join();
    Send(3, [](auto& builder) { return wire::CreateReady(builder); });
    REQUIRE(Expect<wire::Start>() != nullptr);
  }
  // Ends the run as the only worker, with requests from `next` on, so that the ps ends.
  void End(uint64_t next) {
    Send(next, [](auto& builder) { return wire::CreateDone(builder, 1, 0.5, 1, 2, 0, 0, 0); });
    REQUIRE(Expect<wire::Ack>() != nullptr);
    Send(next + 1, [](auto& builder) { return wire::CreateWaitEnd(builder); });
    REQUIRE(Expect<wire::End>() != nullptr);
    Send(next + 2, [](auto& builder) { return wire::CreateBye(builder); });
  }
  std::vector<float> Values(const wire::Weights& weights) {
    const net::TensorView view = net::Tensor(message_, weights);
    std::vector<float> values(view.size / sizeof(float));
    std::memcpy(values.data(), view.data, view.size);
    return values;
  }
  // The task's incarnation for every ps. Call this before Join().
  void set_incarnation(uint64_t incarnation) { incarnation_ = incarnation; }
  // Closes the connection.
  void Leave() {
    channel_->Disconnect(node_);
    left_ = true;
  }
  bool left() const { return left_; }
  void set_run_id(uint64_t run_id) { run_id_ = run_id; }
  uint64_t run_id() const { return run_id_; }

 private:
  const Config config_;
  const int index_;
  const int ps_;
  const wire::Role role_;
  const net::NodeId node_;
  uint64_t incarnation_ = node_;
  const std::unique_ptr<net::Channel> channel_;
  net::Encoder encoder_;
  net::Message message_;
  uint64_t run_id_ = 0;
  bool left_ = false;
};

inline Config OneWorker() {
  Config config = LinearCluster(1, 1, 100);
  config.train.optimizer.learning_rate = 1;
  return config;
}

// A ps and its only worker, which has begun with request 3.
struct OneWorkerRun {
  explicit OneWorkerRun(const Config& of = OneWorker())
      : config(of), ps(config, transport), worker(config, transport, 0) {
    worker.Begin();
  }

  net::InprocTransport transport;
  const Config config;
  Ps ps;
  RawWorker worker;
};

}  // namespace dtrain
