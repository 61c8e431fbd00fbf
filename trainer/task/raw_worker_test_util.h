// Every ps on a thread, and workers that a test drives message by message, over the in-process transport.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "net/codec.h"
#include "net/inproc_transport.h"
#include "trainer/config/dump.h"
#include "trainer/table/key_list.h"
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

// A connection of a worker to one ps, driven message by message.
class RawWorker {
 public:
  // `node`: the name of its conversation.
  RawWorker(const Config& config, net::Transport& transport, int index, int ps = 0,
            net::NodeId node = net::NewNodeId())
      : config_(config), index_(index), ps_(ps), node_(node), channel_(transport.NewChannel()) {
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
  // `version`: in sync, that of the weights from which the gradient was computed. `empty`: the weights have
  // it.
  void SendPush(uint64_t request, const std::vector<float>& gradient, uint32_t block = 0,
                uint64_t version = 0, bool empty = false) {
    net::Message message = encoder_.Push({run_id_, 0, request}, block, 1, 0,
                                         {gradient.data(), gradient.size() * sizeof(float), nullptr, nullptr},
                                         version, {}, {}, net::Compression::kNone, empty);
    channel_->Send(node_, message);
  }
  // Asks for rows of a table, with the gradient of those that request `of` asked for; without it a pull, of
  // an evaluation with `read`.
  void SendRows(uint64_t request, const std::vector<uint32_t>& keys, uint64_t of = 0,
                const std::vector<float>& gradient = {}, net::Compression form = net::Compression::kNone,
                bool read = false) {
    const auto values_count = static_cast<int64_t>(gradient.size());
    const size_t values = net::CompressedBytes(form, values_count);
    std::vector<std::byte> bytes(values +
                                 (keys.size() + 4) * sizeof(uint64_t));  // also for keys that are none
    if (form != net::Compression::kNone) {
      net::CompressAtRandom(form, gradient.data(), request, values_count, bytes.data());
    } else if (values > 0) {
      std::memcpy(bytes.data(), gradient.data(), values);
    }
    const KeyList rows(keys.begin(), keys.end());
    const size_t key_bytes =
        EncodeKeys({rows.data(), static_cast<int64_t>(rows.size())}, {0, 8}, bytes.data() + values);
    const net::LentBytes payload{bytes.data(), values + key_bytes, nullptr, nullptr};
    const auto count = static_cast<uint32_t>(keys.size());
    net::PullHead head;
    head.enter = !read;
    head.read = read;
    head.keys = count;
    const net::Envelope envelope{run_id_, 0, request};
    net::Message message = of == 0 ? encoder_.Pull(envelope, head, payload)
                                   : encoder_.Push(envelope, 0, 1, 0, payload, 0, {},
                                                   {of, count, static_cast<uint32_t>(key_bytes)}, form);
    channel_->Send(node_, message);
  }
  // Says that the worker has no step to take until it enters again.
  void SendLeaves(uint64_t request) {
    Send(request, [](auto& builder) {
      return wire::CreatePull(builder, 0, false, 0, 0, false, 0, 0, 0, true, 0, true);
    });
  }
  void SendHello() {
    Send(0, [&](flatbuffers::FlatBufferBuilder& builder) {
      return wire::CreateHello(builder, net::kProtocol, wire::Role::Worker, static_cast<uint32_t>(index_),
                               static_cast<uint32_t>(ps_), builder.CreateString("raw"),
                               builder.CreateString("test, pid 1"), builder.CreateString("0"), 0,
                               incarnation_, 0, 0, 0, SettingsHash(RunSettings(config_)), first_request_);
    });
  }
  // The next message, except those that only ask whether this connection is open; null: none comes. `beats`:
  // these too.
  const wire::Envelope* Receive(milliseconds wait = kPatience, bool beats = false) {
    const TimePoint deadline = Clock::now() + wait;
    net::NodeId from = 0;
    while (channel_->Receive(deadline, &from, &message_) == net::ReceiveResult::kMessage) {
      const wire::Envelope* envelope = net::Decode(message_);
      if (envelope == nullptr || beats || envelope->body_type() != wire::Body::Heartbeat) return envelope;
    }
    return nullptr;
  }
  template <typename Table>
  const Table* Expect() {
    const wire::Envelope* envelope = Receive();
    REQUIRE(envelope != nullptr);
    return envelope->body_as<Table>();
  }
  // A ps that has spent its time for strangers drops a Hello: it is said again, as tasks do.
  void Join() {
    SendHello();
    const wire::Envelope* welcome = Receive(kPatience / 2);
    if (welcome == nullptr) SendHello(), welcome = Receive();
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
    Send(next, [](auto& builder) { return wire::CreateDone(builder, 1, 0.5f, 1, 2, 0, 0, 0); });
    REQUIRE(Expect<wire::Ack>() != nullptr);
    Send(next + 1, [](auto& builder) { return wire::CreateWaitEnd(builder); });
    REQUIRE(Expect<wire::End>() != nullptr);
    Send(next + 2, [](auto& builder) { return wire::CreateBye(builder); });
  }
  std::vector<float> Values(const wire::Weights& weights) {
    const net::TensorView view = net::Tensor(message_, weights);
    const auto form = static_cast<net::Compression>(weights.form());
    std::vector<float> values(view.size / net::CompressedBytes(form, 1));  // of a form without groups
    if (form != net::Compression::kNone) {
      net::Decompress(form, view.data, view.size, static_cast<int64_t>(values.size()), values.data());
    } else if (view.size > 0) {
      std::memcpy(values.data(), view.data, view.size);
    }
    return values;
  }
  // The task's incarnation for every ps. Call this before Join().
  void set_incarnation(uint64_t incarnation) { incarnation_ = incarnation; }
  // The number of its first request, as its Hello says. Call this before Join().
  void set_first_request(uint64_t request) { first_request_ = request; }
  void set_run_id(uint64_t run_id) { run_id_ = run_id; }
  uint64_t run_id() const { return run_id_; }

 private:
  const Config config_;
  const int index_;
  const int ps_;
  const net::NodeId node_;
  uint64_t incarnation_ = node_;
  uint64_t first_request_ = 0;
  const std::unique_ptr<net::Channel> channel_;
  net::Encoder encoder_;
  net::Message message_;
  uint64_t run_id_ = 0;
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

constexpr milliseconds kNothing{100};  // how long to wait for an answer that must not come

inline const auto kReady = [](auto& builder) { return wire::CreateReady(builder); };

inline Config Driven(TrainMode mode, int workers = 2, int ps = 1) {
  Config config = LinearCluster(ps, workers, 100);
  config.train.mode = mode;
  config.train.staleness = 0;
  config.train.optimizer.learning_rate = 1;
  config.failure.detect_s = 60;  // no worker here sends heartbeats
  return config;
}

// A worker with a connection to every ps.
class Task {
 public:
  // `first`: the number of its first request to a ps i > 0, as its Hello says; 0: it does not say.
  Task(const Config& config, net::Transport& transport, int index, uint64_t first = 0)
      : index_(static_cast<uint32_t>(index)) {
    const uint64_t incarnation = net::NewNodeId();
    for (size_t ps = 0; ps < config.cluster.ps.size(); ++ps) {
      links_.push_back(std::make_unique<RawWorker>(config, transport, index, static_cast<int>(ps)));
      links_.back()->set_incarnation(incarnation);
      if (ps > 0) links_.back()->set_first_request(first);
    }
  }
  RawWorker& To(size_t ps) { return *links_[ps]; }
  RawWorker& operator*() { return To(0); }
  RawWorker* operator->() { return &To(0); }
  void Join() {
    for (const auto& link : links_) {
      link->SendHello();
      const wire::Envelope* answer = link->Receive();
      // A ps i > 0 may not have joined ps 0 yet, or may still have to notice that an earlier worker is gone.
      // Asks at the pace of a task: a ps reads little of what comes faster.
      while (answer != nullptr && answer->body_as_Welcome() == nullptr) {
        link->Receive(milliseconds(10));
        link->SendHello();
        answer = link->Receive();
      }
      REQUIRE(answer != nullptr);
      link->set_run_id(answer->run_id());
    }
  }
  // Sends request 1, Ready, and returns its answer.
  const wire::Start& Start() {
    To(0).Send(1, kReady);
    return WaitForStart();
  }
  const wire::Start& WaitForStart() {
    const wire::Start* start = To(0).Expect<wire::Start>();
    REQUIRE(start != nullptr);
    return *start;
  }
  void Enter(uint64_t request, const std::vector<uint32_t>& together) {
    for (const auto& link : links_) {
      link->Send(request, [&](auto& builder) {
        return wire::CreatePull(builder, 0, true, builder.CreateVector(together));
      });
    }
  }
  void Lose(int exit_code = 4) {
    To(0).Send(0, [&](auto& builder) {
      return wire::CreateAbort(builder, exit_code, wire::Role::Worker, index_, builder.CreateString("lost"));
    });
  }
  void CheckWeights(size_t ps, uint64_t version, const std::vector<float>& values) {
    const wire::Weights* weights = To(ps).Expect<wire::Weights>();
    REQUIRE(weights != nullptr);
    CHECK(weights->version() == version);
    CHECK(To(ps).Values(*weights) == values);
  }
  void CheckNothing(size_t ps = 0) { CHECK(To(ps).Receive(kNothing) == nullptr); }

 private:
  const uint32_t index_;
  std::vector<std::unique_ptr<RawWorker>> links_;
};

// A run in which all workers but those that come later have begun. A worker is lost by its own Abort, so no
// time has to pass. Request 4 got their first weights, unless `enters` is false.
struct DrivenRun {
  explicit DrivenRun(const Config& of, int workers = 0, bool enters = true, uint64_t first = 0) : config(of) {
    const auto count = workers > 0 ? workers : static_cast<int>(config.cluster.worker.size());
    for (size_t i = 0; i < config.cluster.ps.size(); ++i) {
      ps.push_back(std::make_unique<Ps>(config, transport, static_cast<int>(i)));
    }
    for (int i = 0; i < count; ++i) tasks.push_back(std::make_unique<Task>(config, transport, i, first));
    for (const auto& task : tasks) task->Join();
    for (int i = count - 1; i >= 0; --i) At(i)->Send(3, kReady);
    for (int i = 0; i < count; ++i) together.push_back(static_cast<uint32_t>(i));
    for (int i = 0; i < count; ++i) At(i).WaitForStart();
    if (!enters) return;
    for (int i = 0; i < count; ++i) Enter(i);
    for (const auto& task : tasks) {
      for (size_t i = 0; i < ps.size(); ++i) REQUIRE(task->To(i).Expect<wire::Weights>()->version() == 0);
    }
  }
  ~DrivenRun() {  // the quickest way to end the run
    if (ps[0]->waited()) return;
    // Exit code 3, diverged, with which any worker can end the run.
    for (const auto& task : tasks) {
      task->Lose(3);
      if (Hears<wire::Abort>(**task)) break;
    }
    tasks.clear();
  }
  // Whether a message of this kind comes before the ps refuses the worker.
  template <typename Table>
  static bool Hears(RawWorker& worker) {
    while (const wire::Envelope* envelope = worker.Receive()) {
      if (envelope->template body_as<Table>() != nullptr) return true;
      if (envelope->body_as_Refuse() != nullptr) return false;
    }
    return false;
  }
  void Enter(int worker) { At(worker).Enter(4, together); }
  Task& At(int worker) { return *tasks[static_cast<size_t>(worker)]; }
  // Another process of the worker, which joins; the connections of the earlier one are closed.
  Task& Again(int worker) {
    const auto index = static_cast<size_t>(worker);
    if (index == tasks.size()) tasks.emplace_back();
    tasks[index].reset();
    tasks[index] = std::make_unique<Task>(config, transport, worker);
    tasks[index]->Join();
    return *tasks[index];
  }

  net::InprocTransport transport;
  const Config config;
  std::vector<uint32_t> together;  // the workers that start together
  std::vector<std::unique_ptr<Ps>> ps;
  std::vector<std::unique_ptr<Task>> tasks;
};

}  // namespace dtrain
