// A run whose workers a test drives by hand, on every ps: they join, leave and come back on demand. A worker
// is lost by its own Abort, so no time has to pass.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/task/raw_worker_test_util.h"

namespace dtrain {

constexpr milliseconds kNothing{100};  // how long to wait for an answer that must not come

inline const auto kReady = [](auto& builder) { return wire::CreateReady(builder); };

inline Config Elastic(TrainMode mode, WorkerLost lost, int workers = 2, int ps = 1) {
  Config config = LinearCluster(ps, workers, 100);
  config.train.mode = mode;
  config.train.staleness = 0;
  config.train.optimizer.learning_rate = 1;
  config.failure.worker_lost = lost;
  config.failure.detect_s = 60;  // no worker here sends heartbeats
  return config;
}

// A worker with a connection to every ps.
class Task {
 public:
  Task(const Config& config, net::Transport& transport, int index) : index_(static_cast<uint32_t>(index)) {
    const uint64_t incarnation = net::NewNodeId();
    for (size_t ps = 0; ps < config.cluster.ps.size(); ++ps) {
      links_.push_back(std::make_unique<RawWorker>(config, transport, index, static_cast<int>(ps)));
      links_.back()->set_incarnation(incarnation);
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
      while (answer != nullptr && answer->body_as_Welcome() == nullptr) {
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
  void Resume(size_t ps, uint64_t request, uint64_t version) {
    To(ps).Send(request,
                [&](auto& builder) { return wire::CreatePull(builder, 0, true, 0, 0, true, version); });
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

// A run in which all workers but those that come later have begun; request 4 got their first weights.
struct ElasticRun {
  explicit ElasticRun(const Config& of, int workers = 0) : config(of) {
    const auto count = workers > 0 ? workers : static_cast<int>(config.cluster.worker.size());
    for (size_t i = 0; i < config.cluster.ps.size(); ++i) {
      ps.push_back(std::make_unique<Ps>(config, transport, static_cast<int>(i)));
    }
    for (int i = 0; i < count; ++i) tasks.push_back(std::make_unique<Task>(config, transport, i));
    for (const auto& task : tasks) task->Join();
    for (int i = count - 1; i >= 0; --i) At(i)->Send(3, kReady);
    std::vector<uint32_t> together;
    for (int i = 0; i < count; ++i) together.push_back(static_cast<uint32_t>(i));
    for (int i = 0; i < count; ++i) At(i).WaitForStart();
    for (const auto& task : tasks) task->Enter(4, together);
    for (const auto& task : tasks) {
      for (size_t i = 0; i < ps.size(); ++i) REQUIRE(task->To(i).Expect<wire::Weights>()->version() == 0);
    }
  }
  ~ElasticRun() {  // the quickest way to end the run
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
  std::vector<std::unique_ptr<Ps>> ps;
  std::vector<std::unique_ptr<Task>> tasks;
};

}  // namespace dtrain
