// A ps and a worker driven by hand, over the in-process transport: what an exchange promises when messages
// are repeated, lost, wrong, or sent by a task that is not registered.
#include <doctest/doctest.h>

#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/codec.h"
#include "net/inproc_transport.h"
#include "trainer/config/dump.h"
#include "trainer/model/layout.h"
#include "trainer/task/raw_worker_test_util.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// Sends a push again, as if its answer was lost, and gets the same refusal.
void CheckRefused(RawWorker& worker, uint64_t request, const std::vector<float>& gradient, uint32_t block) {
  for (int copy = 0; copy < 2; ++copy) {
    worker.SendPush(request, gradient, block);
    const wire::Refuse* refuse = worker.Expect<wire::Refuse>();
    REQUIRE(refuse != nullptr);
    CHECK(refuse->reason() == wire::Reason::BadRequest);
  }
}

TEST_CASE("exchange: a push sent twice is answered twice and applied once") {
  OneWorkerRun run;
  RawWorker& worker = run.worker;
  for (int copy = 0; copy < 3; ++copy) {
    worker.SendPush(4, {1, 2});
    const wire::Weights* weights = worker.Expect<wire::Weights>();
    REQUIRE(weights != nullptr);
    CHECK(weights->version() == 1);
    CHECK(weights->global_step() == 1);
    CHECK(weights->steps() == 1);
    CHECK(worker.Values(*weights) == std::vector<float>{-1, -2});
  }
  worker.End(5);
  CHECK(run.ps.Wait().global_step == 1);
}

TEST_CASE("exchange: a push behind a lost one waits until the lost one has come again") {
  OneWorkerRun run;
  RawWorker& worker = run.worker;
  worker.SendPush(5, {1, 1});  // 4 was lost
  CHECK(worker.Receive(milliseconds(100)) == nullptr);
  worker.SendPush(4, {1, 1});
  CHECK(worker.Expect<wire::Weights>()->version() == 1);
  worker.SendPush(5, {1, 1});
  CHECK(worker.Expect<wire::Weights>()->version() == 2);
  worker.End(6);
  run.ps.Wait();
}

TEST_CASE("exchange: a gradient of another size is refused and not applied") {
  OneWorkerRun run;
  RawWorker& worker = run.worker;
  CheckRefused(worker, 4, {1, 2, 3}, 0);
  worker.Send(4, [](auto& builder) { return wire::CreatePull(builder); });
  CHECK(worker.Expect<wire::Weights>()->version() == 0);
  worker.End(5);
  CHECK(run.ps.Wait().global_step == 0);
}

TEST_CASE("exchange: a message of another run is refused") {
  OneWorkerRun run;
  RawWorker& worker = run.worker;
  const uint64_t run_id = worker.run_id();
  worker.set_run_id(run_id + 1);
  worker.SendPush(4, {1, 2});
  CHECK(worker.Expect<wire::Refuse>()->reason() == wire::Reason::Run);
  worker.set_run_id(run_id);
  worker.End(4);
  CHECK(run.ps.Wait().global_step == 0);
}

TEST_CASE("handshake: each reason to refuse has its own message") {
  net::InprocTransport transport;
  const Config config = OneWorker();
  Ps ps(config, transport);

  RawWorker unregistered(config, transport, 0);
  unregistered.SendPush(1, {1, 2});
  unregistered.Send(1, [](auto& builder) { return wire::CreatePull(builder); });
  CHECK(unregistered.Expect<wire::Refuse>()->reason() == wire::Reason::Run);

  RawWorker old(config, transport, 0);
  old.SendHello(net::kProtocol + 1);
  const wire::Refuse* refuse = old.Expect<wire::Refuse>();
  CHECK(refuse->reason() == wire::Reason::Protocol);
  CHECK(refuse->text()->str().find("wire protocol") != std::string::npos);

  Config different = config;
  different.train.optimizer.learning_rate = 0.25;
  RawWorker other(config, transport, 0);
  other.SendHello(net::kProtocol, &different);
  refuse = other.Expect<wire::Refuse>();
  CHECK(refuse->reason() == wire::Reason::Config);
  CHECK(refuse->text()->str().find("train.optimizer.learning_rate is 1 on ps 0 and 0.25 on worker 0") !=
        std::string::npos);

  RawWorker outside(config, transport, 7);
  outside.SendHello();
  CHECK(outside.Expect<wire::Refuse>()->reason() == wire::Reason::Index);

  RawWorker worker(config, transport, 0);
  worker.Begin();
  RawWorker twin(config, transport, 0);
  twin.SendHello();
  refuse = twin.Expect<wire::Refuse>();
  CHECK(refuse->reason() == wire::Reason::Held);
  worker.End(4);
  ps.Wait();
}

TEST_CASE("handshake: a newcomer takes an index whose old connection is gone, and goes on at its step") {
  net::InprocTransport transport;
  const Config config = OneWorker();
  Ps ps(config, transport);
  {
    RawWorker first(config, transport, 0);
    first.Begin();
    first.SendPush(4, {1, 2});
    CHECK(first.Expect<wire::Weights>()->global_step() == 1);
  }
  RawWorker second(config, transport, 0);
  second.Join();
  second.Send(1, [](auto& builder) { return wire::CreateReady(builder); });
  const wire::Start* start = second.Expect<wire::Start>();
  REQUIRE(start != nullptr);
  CHECK(start->local_step() == 1);
  CHECK(start->steps() == 1);
  second.SendPush(2, {1, 2});
  CHECK(second.Expect<wire::Weights>()->global_step() == 2);
  second.End(3);
  CHECK(ps.Wait().global_step == 2);
}

TEST_CASE("handshake: a Hello as long as a frame may be is refused, and the ps lives on") {
  net::InprocTransport transport;
  const Config config = OneWorker();
  Ps ps(config, transport);
  RawWorker loud(config, transport, 0);
  const std::string text(net::kMaxHeaderBytes - 4096, 'x');
  loud.Send(0, [&](flatbuffers::FlatBufferBuilder& builder) {
    const std::vector<flatbuffers::Offset<wire::Setting>> settings;
    return wire::CreateHello(builder, net::kProtocol + 1, wire::Role::Worker, 0, 0,
                             builder.CreateString("raw"), builder.CreateString("test, pid 1"),
                             builder.CreateString(text), builder.CreateVector(settings));
  });
  CHECK(loud.Expect<wire::Refuse>()->reason() == wire::Reason::Protocol);
  RawWorker many(config, transport, 0);
  many.Send(0, [&](flatbuffers::FlatBufferBuilder& builder) {
    const auto shared = builder.CreateString(std::string(1000, 'y'));
    const std::vector<flatbuffers::Offset<wire::Setting>> settings(
        20000, wire::CreateSetting(builder, shared, shared));
    return wire::CreateHello(builder, net::kProtocol, wire::Role::Worker, 0, 0, builder.CreateString("raw"),
                             builder.CreateString("test, pid 1"), builder.CreateString("0"),
                             builder.CreateVector(settings));
  });
  CHECK(many.Expect<wire::Refuse>()->reason() == wire::Reason::BadRequest);
  RawWorker worker(config, transport, 0);
  worker.Begin();
  worker.End(4);
  ps.Wait();
}

TEST_CASE("exchange: a finished worker that comes back when all are done has nothing to do") {
  net::InprocTransport transport;
  const Config config = OneWorker();
  Ps ps(config, transport);
  {
    RawWorker first(config, transport, 0);
    first.Begin();
    first.SendPush(4, {1, 2});
    CHECK(first.Expect<wire::Weights>()->global_step() == 1);
    first.Send(5, [](auto& builder) { return wire::CreateDone(builder, 1, 0.5, 1, 2, 0, 0, 0); });
    REQUIRE(first.Expect<wire::Ack>() != nullptr);
  }
  RawWorker second(config, transport, 0);
  second.Join();
  second.Send(1, [](auto& builder) { return wire::CreateReady(builder); });
  CHECK(second.Expect<wire::Start>()->over());
  second.End(2);
  CHECK(ps.Wait().global_step == 1);
}

// One worker and a model of one block and five values.
Config TwoBlocks() {
  Config config = OneWorker();
  config.model.inputs = kBlockValues + 4;
  return config;
}

TEST_CASE("blocks: a gradient in two blocks is one step, counted with the second") {
  OneWorkerRun run(TwoBlocks());
  RawWorker& worker = run.worker;
  const std::vector<float> first(kBlockValues, 1), second(5, 1);
  worker.SendPush(4, first, 0);
  const wire::Weights* weights = worker.Expect<wire::Weights>();
  CHECK(weights->global_step() == 0);
  CHECK(worker.Values(*weights) == std::vector<float>(kBlockValues, -1));
  worker.SendPush(5, second, 1);
  weights = worker.Expect<wire::Weights>();
  CHECK(weights->global_step() == 1);
  CHECK(worker.Values(*weights) == std::vector<float>(5, -1));
  worker.SendPush(5, second, 1);  // repeated: answered, not applied
  CHECK(worker.Expect<wire::Weights>()->version() == 1);
  worker.End(6);
  CHECK(run.ps.Wait().global_step == 1);
}

TEST_CASE("blocks: one out of turn, and one that is not there, are refused and not applied") {
  OneWorkerRun run(TwoBlocks());
  RawWorker& worker = run.worker;
  const std::vector<float> second(5, 1);
  for (const uint32_t block : {1u, 2u, 0xffffffffu}) CheckRefused(worker, 4, second, block);
  worker.SendPush(5, second, 1);  // sent before the push before it was refused
  CHECK(worker.Receive(milliseconds(100)) == nullptr);
  worker.Send(4, [](auto& builder) { return wire::CreatePull(builder, 1); });
  CHECK(worker.Expect<wire::Weights>()->version() == 0);
  worker.End(5);
  CHECK(run.ps.Wait().global_step == 0);
}

TEST_CASE("start-up: a worker that never comes ends the wait at the deadline, by name") {
  net::InprocTransport transport;
  Config config = LinearCluster(1, 2, 100);
  config.failure.startup_timeout_s = 0.2;
  Ps ps(config, transport);
  RawWorker worker(config, transport, 0);
  worker.Join();
  CHECK_THROWS_WITH_AS(ps.Wait(), doctest::Contains("worker 1 (127.0.0.1:11002)"), PeerLost);
}

TEST_CASE("start-up: a ps that is not there ends a worker's wait at the deadline, by name and reason") {
  net::InprocTransport transport;
  Config config = LinearCluster(1, 1, 100);
  config.failure.startup_timeout_s = 0.2;
  LogOptions options;
  options.standard_error = false;
  Logger log("worker 0", options);
  CHECK_THROWS_WITH_AS(RunTask(config, {Role::kWorker, 0}, transport, log, {}),
                       doctest::Contains("ps 0 (127.0.0.1:10001)"), PeerLost);
}

TEST_CASE("failure: a worker that falls silent ends the run within detect_s, by name") {
  net::InprocTransport transport;
  Config config = OneWorker();
  config.failure.detect_s = 0.2;
  Ps ps(config, transport);
  RawWorker worker(config, transport, 0);
  worker.Begin();
  CHECK_THROWS_WITH_AS(ps.Wait(), doctest::Contains("worker 0 (127.0.0.1:11001; test, pid 1)"), PeerLost);
}

}  // namespace
}  // namespace dtrain
