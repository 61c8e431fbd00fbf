// The cost of a step on the wire: its messages, by kind, and their bytes. The figures are the difference of
// two runs whose steps differ by a hundred, so start and end do not count.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "net/codec.h"
#include "net/inproc_transport.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

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

// For failed checks.
inline doctest::String toString(const Sent& sent) {
  return fmt::format("{} messages, headers {}, payloads {}", sent.messages, sent.header_bytes,
                     sent.payload_bytes)
      .c_str();
}

namespace {

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
int64_t BytesOfTheTimeHeld(const wire::Envelope& envelope, const wire::Weights& weights) {
  const auto header_bytes = [&](uint32_t held_us) {
    const size_t values = weights.values() == nullptr ? 0 : weights.values()->size();
    const net::LentBytes inside{values == 0 ? nullptr : weights.values()->data(), values, nullptr, nullptr};
    const net::Message message = net::Encoder().Weights(
        {envelope.run_id(), envelope.run_epoch(), envelope.request()},
        {weights.version(), weights.global_step(), weights.steps(), weights.checksum(), held_us}, inside);
    return static_cast<int64_t>(message.header.size());
  };
  return header_bytes(weights.held_us()) - header_bytes(0);
}

// Counts the messages that a task sends, by kind, with their bytes. The kind of an answer includes the
// question: "Weights to Push".
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

using Costs = std::map<std::string, Sent>;

constexpr int64_t kSteps = 100;

Config SoftmaxJob(TrainMode mode, int ps, int64_t steps) {
  Config config = DigitsCluster(ps, 2, 1);
  config.data.train.rows = 100;
  config.data.test.format = DataFormat::kNone;
  config.train.mode = mode;
  config.train.epochs.reset();
  config.train.steps = steps;
  config.train.batch_size = 5;
  config.train.optimizer.learning_rate = 0.01;
  config.net.checksum = false;
  config.failure.detect_s = 20;  // a busy machine must not lose a task
  return config;
}

void RunCounted(const Config& config, Count& count) {
  PrepareProcess(config);
  net::InprocTransport transport;
  LogOptions log_options;
  log_options.level = LogLevel::kError;
  std::vector<std::thread> threads;
  const auto start = [&](Role role, size_t tasks) {
    for (size_t i = 0; i < tasks; ++i) {
      threads.emplace_back([&, task = TaskId{role, static_cast<int>(i)}] {
        CountingTransport counted(transport, task.role == Role::kWorker ? "worker" : TaskName(task), count);
        Logger log(TaskName(task), log_options);
        RunTask(config, task, counted, log, {});
      });
    }
  };
  start(Role::kPs, config.cluster.ps.size());
  start(Role::kWorker, config.cluster.worker.size());
  for (std::thread& thread : threads) thread.join();
}

// Whether messages of this kind, of the start or of waiting, may be repeated at any time (docs/wire.md).
bool IsFreelyRepeated(const std::string& kind) {
  for (const char* free : {": Hello", ": Welcome", ": Refuse", ": Heartbeat"}) {
    if (kind.find(free) != std::string::npos) return true;
  }
  return false;
}

// The messages of a run in which no request had to be repeated.
Costs CostsOf(const Config& config) {
  constexpr int kTries = 5;  // for a machine that delays a task by a second
  for (int i = 0; i < kTries; ++i) {
    Count count;
    RunCounted(config, count);
    if (count.repeats() == 0) return count.sent();
  }
  FAIL("requests are repeated in each of ", kTries, " runs");
  return {};
}

// The messages of kSteps further steps. Leaves out kinds whose number is the same in both runs: texts at the
// end differ in length.
Costs CostsOfSteps(TrainMode mode, int ps) {
  const Costs few = CostsOf(SoftmaxJob(mode, ps, kSteps));
  Costs costs;
  for (const auto& [kind, sent] : CostsOf(SoftmaxJob(mode, ps, 2 * kSteps))) {
    const auto at = few.find(kind);
    const Sent before = at == few.end() ? Sent() : at->second;
    if (IsFreelyRepeated(kind) || sent.messages == before.messages) continue;
    costs[kind] = {sent.messages - before.messages, sent.header_bytes - before.header_bytes,
                   sent.payload_bytes - before.payload_bytes};
  }
  return costs;
}

Sent Messages(int64_t count, int64_t header_bytes, int64_t payload_bytes) {
  return {count, count * header_bytes, count * payload_bytes};
}

// `gradients`: of both workers in kSteps steps.
Costs ExpectedCosts(int ps, int64_t gradients, int64_t push_header_bytes, int64_t loss_bytes) {
  constexpr int64_t kLeaderHeaderBytes = 96;  // with the global step and the next grant
  constexpr int64_t kHeaderBytes = 80;
  const Layout layout = MakeLayout(SoftmaxJob(TrainMode::kAsync, ps, 1), ps);
  Costs costs;
  Sent& pushes = costs["worker: Push"];
  for (int i = 0; i < ps; ++i) {
    const int64_t range_bytes =
        layout.ps[static_cast<size_t>(i)].size() * static_cast<int64_t>(sizeof(float));
    pushes += Messages(gradients, push_header_bytes + (i == 0 ? loss_bytes : 0), range_bytes);
    costs[fmt::format("ps {}: Weights to Push", i)] =
        Messages(gradients, i == 0 ? kLeaderHeaderBytes : kHeaderBytes, range_bytes);
  }
  return costs;
}

void CheckCosts(const Costs& costs, const Costs& expected) {
  for (const auto& [kind, sent] : costs) {
    CAPTURE(kind);
    CHECK(expected.count(kind) == 1);
  }
  for (const auto& [kind, sent] : expected) {
    CAPTURE(kind);
    REQUIRE(costs.count(kind) == 1);
    CHECK(costs.at(kind) == sent);
  }
}

TEST_CASE("step messages: async and ssp, a step is one gradient to each ps and its answer, nothing else") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp}) {
    for (const int ps : {1, 3}) {
      CAPTURE(ps);
      CheckCosts(CostsOfSteps(mode, ps), ExpectedCosts(ps, kSteps, 72, 16));
    }
  }
}

TEST_CASE("step messages: sync, a step is besides one question for the round by each ps but ps 0") {
  for (const int ps : {1, 3}) {
    CAPTURE(ps);
    Costs expected = ExpectedCosts(ps, 2 * kSteps, 88, 8);
    for (int i = 1; i < ps; ++i) expected[fmt::format("ps {}: WaitEnd", i)] = Messages(kSteps, 80, 0);
    if (ps > 1) expected["ps 0: Round to WaitEnd"] = Messages((ps - 1) * kSteps, 128, 0);
    CheckCosts(CostsOfSteps(TrainMode::kSync, ps), expected);
  }
}

}  // namespace
}  // namespace dtrain
