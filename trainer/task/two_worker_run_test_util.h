// One ps and two workers that a test drives message by message.
#pragma once

#include <optional>
#include <vector>

#include "trainer/task/raw_worker_test_util.h"

namespace dtrain {

constexpr milliseconds kNothing{100};  // how long to wait for an answer that must not come

inline Config TwoWorkers(TrainMode mode, int ps = 1) {
  Config config = LinearCluster(ps, 2, 100);
  config.train.mode = mode;
  config.train.optimizer.learning_rate = 1;
  return config;
}

// A run that both workers have begun; each will pull its first weights with request 4. ps 1, if the config
// has one, is driven by hand too and has used request 1.
struct TwoWorkerRun {
  explicit TwoWorkerRun(const Config& of)
      : config(of), ps(config, transport), workers{{config, transport, 0}, {config, transport, 1}} {
    const auto ready = [](auto& builder) { return wire::CreateReady(builder); };
    if (config.cluster.ps.size() > 1) {
      other_ps.emplace(config, transport, 1, 0, wire::Role::Ps);
      other_ps->Join();
      other_ps->Send(1, ready);
    }
    for (RawWorker& worker : workers) worker.Join();
    workers[1].Send(3, ready);
    workers[0].Send(3, ready);
    if (other_ps) StartOther();
    REQUIRE(workers[0].Expect<wire::Start>() != nullptr);
    REQUIRE(workers[1].Expect<wire::Start>() != nullptr);
  }
  // ps 1 answers each order to fill its range, until the run begins.
  void StartOther() {
    while (true) {
      const wire::Envelope* envelope = other_ps->Receive();
      REQUIRE(envelope != nullptr);
      if (envelope->body_as_Start() != nullptr) return;
      const wire::Order* order = envelope->body_as_Order();
      REQUIRE(order != nullptr);
      REQUIRE(order->fill() != nullptr);
      const uint64_t number = order->fill()->number();
      other_ps->Send(0, [&](auto& builder) {
        return wire::CreateReport(builder, wire::CreateFilled(builder, number, 0, true));
      });
    }
  }
  ~TwoWorkerRun() {  // the quickest way to end a ps
    for (RawWorker& worker : workers) {
      worker.Send(0, [](auto& builder) {
        return wire::CreateAbort(builder, 1, wire::Role::Worker, 0, builder.CreateString("enough"));
      });
    }
    for (RawWorker& worker : workers) HearAbort(worker);
    if (other_ps) HearAbort(*other_ps);
  }
  // The ps sends an Abort to every task but the one that sent the first, and waits for a Bye from each.
  static void HearAbort(RawWorker& task) {
    if (task.left()) return;
    while (const wire::Envelope* envelope = task.Receive(kNothing)) {
      if (envelope->body_as_Abort() == nullptr) continue;
      task.Send(99, [](auto& builder) { return wire::CreateBye(builder); });
      return;
    }
  }
  void Enter(int worker) {
    workers[worker].Send(4, [](auto& builder) {
      return wire::CreatePull(builder, 0, true, builder.CreateVector(std::vector<uint32_t>{0, 1}));
    });
  }
  void EnterBoth() {
    for (const int worker : {0, 1}) Enter(worker);
    for (RawWorker& worker : workers) REQUIRE(worker.Expect<wire::Weights>()->version() == 0);
  }
  void CheckWeights(int worker, uint64_t version, const std::vector<float>& values) {
    const wire::Weights* weights = workers[worker].Expect<wire::Weights>();
    REQUIRE(weights != nullptr);
    CHECK(weights->version() == version);
    CHECK(workers[worker].Values(*weights) == values);
  }
  void CheckNothing(int worker) { CHECK(workers[worker].Receive(kNothing) == nullptr); }

  net::InprocTransport transport;
  const Config config;
  Ps ps;
  RawWorker workers[2];
  std::optional<RawWorker> other_ps;
};

}  // namespace dtrain
