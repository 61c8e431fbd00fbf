// Workers driven by hand, over the in-process transport: what an exchange promises when messages are
// repeated, lost or wrong, and when each mode applies and answers.
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

TEST_CASE("exchange: an empty push is answered, but not applied, and its granted step goes to another") {
  Config config = OneWorker();
  config.train.steps = 1;
  OneWorkerRun run(config);
  RawWorker& worker = run.worker;
  for (int copy = 0; copy < 2; ++copy) {
    worker.SendPush(4, {7, 7}, 0, 0, /*empty=*/true);
    const wire::Weights* weights = worker.Expect<wire::Weights>();
    REQUIRE(weights != nullptr);
    CHECK(weights->version() == 0);
    CHECK(weights->global_step() == 0);
    CHECK(weights->steps() == 1);
    CHECK(worker.Values(*weights) == std::vector<float>{0, 0});
  }
  worker.SendPush(5, {1, 2});
  const wire::Weights* weights = worker.Expect<wire::Weights>();
  REQUIRE(weights != nullptr);
  CHECK(weights->global_step() == 1);
  CHECK(weights->steps() == 0);
  CHECK(worker.Values(*weights) == std::vector<float>{-1, -2});
  worker.End(6);
  const RunSummary summary = run.ps.Wait();
  CHECK(summary.global_step == 1);
  CHECK(summary.examples == 1);
}

Config OneSparseWorker() {
  Config config = OneWorker();
  config.model.inputs = 7;  // the rows 0 to 6, and 7 for the bias
  config.data.train.format = DataFormat::kLibsvm;
  config.data.train.path = {"rows.svm"};
  return config;
}

TEST_CASE("exchange of rows: a push sent twice is answered twice with its rows, and applied once") {
  OneWorkerRun run(OneSparseWorker());
  RawWorker& worker = run.worker;
  worker.SendRows(4, {1, 5});
  CHECK(worker.Values(*worker.Expect<wire::Weights>()) == std::vector<float>(2));
  for (int copy = 0; copy < 3; ++copy) {
    worker.SendRows(5, {0, 1, 5, 7}, 4, {2, 3});
    const wire::Weights* weights = worker.Expect<wire::Weights>();
    REQUIRE(weights != nullptr);
    CHECK(weights->version() == 1);
    CHECK(weights->steps() == 1);
    CHECK(worker.Values(*weights) == std::vector<float>{0, -2, -3, 0});
  }
  worker.SendRows(6, {}, 5, {1, 0, 0, 1});
  CHECK(worker.Values(*worker.Expect<wire::Weights>()).empty());
  worker.End(7);
  CHECK(run.ps.Wait().global_step == 2);
}

TEST_CASE("exchange of rows: keys that are none, and gradients of rows that nobody asked for, are refused") {
  OneWorkerRun run(OneSparseWorker());
  RawWorker& worker = run.worker;
  const auto refused = [&](uint64_t request, const std::vector<uint32_t>& keys, uint64_t of,
                           const std::vector<float>& gradient) {
    worker.SendRows(request, keys, of, gradient);
    const wire::Refuse* refuse = worker.Expect<wire::Refuse>();
    REQUIRE(refuse != nullptr);
    CHECK(refuse->reason() == wire::Reason::BadRequest);
    return refuse->text()->str();
  };
  CHECK(refused(4, {5, 1}, 0, {}) == "keys 0 to 1 of 2 go beyond the last of the 8 rows");
  CHECK(refused(4, {8}, 0, {}) == "keys 0 to 0 of 1 go beyond the last of the 8 rows");
  worker.SendRows(4, {1, 5});
  REQUIRE(worker.Expect<wire::Weights>() != nullptr);
  CHECK(refused(5, {1}, 3, {1, 1}) == "it is of the rows of request 3, which are not here");
  CHECK(refused(5, {1}, 4, {1}) == "block 0 has 6 bytes, 2 of them of keys, and is of 2 rows, which take 8");
  CHECK(refused(5, {1, 1}, 4, {1, 1}) == "keys 0 to 1 of 2 go beyond the last of the 8 rows");
  worker.SendRows(5, {1, 5}, 4, {1, 1});  // none of these was applied
  CHECK(worker.Values(*worker.Expect<wire::Weights>()) == std::vector<float>{-1, -1});
  worker.End(6);
  CHECK(run.ps.Wait().global_step == 1);
}

TEST_CASE("exchange of rows: they come and go in the forms of net.compress, those of an evaluation in full") {
  Config config = OneSparseWorker();
  config.net.compress = {net::Compression::kInt8, net::Compression::kBf16};
  OneWorkerRun run(config);
  RawWorker& worker = run.worker;
  const auto weights = [&](net::Compression form) {
    const wire::Weights* const said = worker.Expect<wire::Weights>();
    REQUIRE(said != nullptr);
    CHECK(said->form() == static_cast<uint8_t>(form));
    return worker.Values(*said);
  };
  worker.SendRows(4, {1, 5});
  CHECK(weights(net::Compression::kBf16) == std::vector<float>(2));
  for (int copy = 0; copy < 2; ++copy) {
    worker.SendRows(5, {0, 1, 5, 7}, 4, {0, 127}, net::Compression::kInt8);
    CHECK(weights(net::Compression::kBf16) == std::vector<float>{0, 0, -127, 0});
  }
  worker.SendRows(6, {0, 1, 5, 7}, 5, {1, 0, 0, 1});
  const wire::Refuse* const refuse = worker.Expect<wire::Refuse>();
  REQUIRE(refuse != nullptr);
  CHECK(refuse->text()->str() ==
        "block 0 has its values as none, and must have them as int8 (net.compress.push)");
  worker.SendRows(6, {5}, 0, {}, net::Compression::kNone, true);
  CHECK(weights(net::Compression::kNone) == std::vector<float>{-127});
  worker.End(7);
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

// The reason why a Hello is refused. It is repeated: a ps drops what strangers say beyond their share of its
// time.
template <typename Hello>
wire::Reason RefusalOf(RawWorker& raw, const Hello& hello) {
  const TimePoint deadline = Clock::now() + kPatience;
  const wire::Envelope* refusal = nullptr;
  while (refusal == nullptr && Clock::now() < deadline) {
    raw.Send(0, hello);
    refusal = raw.Receive(milliseconds(200));
  }
  REQUIRE(refusal != nullptr);
  REQUIRE(refusal->body_as_Refuse() != nullptr);
  return refusal->body_as_Refuse()->reason();
}

TEST_CASE("handshake: a Hello as long as a frame may be is refused, and the ps lives on") {
  net::InprocTransport transport;
  const Config config = OneWorker();
  Ps ps(config, transport);
  RawWorker loud(config, transport, 0);
  const std::string text(net::kMaxHeaderBytes - 4096, 'x');
  const auto long_text = [&](flatbuffers::FlatBufferBuilder& builder) {
    const std::vector<flatbuffers::Offset<wire::Setting>> settings;
    return wire::CreateHello(builder, net::kProtocol + 1, wire::Role::Worker, 0, 0,
                             builder.CreateString("raw"), builder.CreateString("test, pid 1"),
                             builder.CreateString(text), builder.CreateVector(settings));
  };
  CHECK(RefusalOf(loud, long_text) == wire::Reason::Protocol);
  RawWorker many(config, transport, 0);
  const auto many_settings = [&](flatbuffers::FlatBufferBuilder& builder) {
    const auto shared = builder.CreateString(std::string(1000, 'y'));
    const std::vector<flatbuffers::Offset<wire::Setting>> settings(
        20000, wire::CreateSetting(builder, shared, shared));
    return wire::CreateHello(builder, net::kProtocol, wire::Role::Worker, 0, 0, builder.CreateString("raw"),
                             builder.CreateString("test, pid 1"), builder.CreateString("0"),
                             builder.CreateVector(settings));
  };
  CHECK(RefusalOf(many, many_settings) == wire::Reason::BadRequest);
  RawWorker worker(config, transport, 0);
  worker.Begin();
  worker.End(4);
  ps.Wait();
}

// One worker and a model of one block and five values.
Config TwoBlocks() {
  Config config = OneWorker();
  config.model.inputs = kBlockValues + 4;
  return config;
}

TEST_CASE(
    "blocks: one of another size, out of turn, and one that is not there, are refused and not applied") {
  OneWorkerRun run(TwoBlocks());
  RawWorker& worker = run.worker;
  const std::vector<float> second(5, 1);
  CheckRefused(worker, 4, {1, 2, 3}, 1);  // the last one of a range is the first that travels
  for (const uint32_t block : {0u, 2u, 0xffffffffu}) CheckRefused(worker, 4, second, block);
  worker.SendPush(5, second, 1);  // sent before the push before it was refused
  CHECK(worker.Receive(milliseconds(100)) == nullptr);
  worker.Send(4, [](auto& builder) { return wire::CreatePull(builder, 1); });
  CHECK(worker.Expect<wire::Weights>()->version() == 0);
  worker.End(5);
  CHECK(run.ps.Wait().global_step == 0);
}

TEST_CASE("blocks: a gradient some of whose blocks are empty is a step if its last one is not") {
  const std::vector<float> first(kBlockValues, 1), second(5, 1);  // lent to the ps
  OneWorkerRun run(TwoBlocks());
  RawWorker& worker = run.worker;
  const auto push = [&](uint64_t request, uint32_t block, bool empty) {
    worker.SendPush(request, block == 0 ? first : second, block, 0, empty);
    const wire::Weights* weights = worker.Expect<wire::Weights>();
    REQUIRE(weights != nullptr);
    return std::make_pair(weights->version(), weights->global_step());
  };
  using Answer = std::pair<uint64_t, uint64_t>;
  CHECK(push(4, 1, true) == Answer(0, 0));
  CHECK(push(5, 0, false) == Answer(1, 1));
  CHECK(push(6, 1, false) == Answer(1, 1));
  CHECK(push(7, 0, true) == Answer(1, 1));
  worker.End(8);
  CHECK(run.ps.Wait().global_step == 1);
}

TEST_CASE("sync: an empty gradient is one of its round, and adds nothing to the mean") {
  for (const bool measured : {false, true}) {
    Config config = Driven(TrainMode::kSync);
    if (measured) config.train.optimizer.clip_norm = 1e9;
    DrivenRun run(config);
    run.At(0)->SendPush(5, {9, 9}, 0, 0, /*empty=*/true);
    run.At(0).CheckNothing();
    run.At(1)->SendPush(5, {1, 2}, 0, 0);
    for (const int worker : {0, 1}) run.At(worker).CheckWeights(0, 1, {-1, -2});
  }
}

TEST_CASE("sync: no round waits for a worker that has left, until it enters again") {
  DrivenRun run(Driven(TrainMode::kSync));
  run.At(1)->SendLeaves(5);
  run.At(1).CheckWeights(0, 0, {0, 0});
  run.At(0)->SendPush(5, {1, 1}, 0, 0);
  run.At(0).CheckWeights(0, 1, {-1, -1});
  run.At(1)->Send(6, [](auto& builder) { return wire::CreatePull(builder, 0, true); });
  run.At(1).CheckNothing();
  run.At(0)->SendPush(6, {1, 1}, 0, 1);
  for (const int worker : {0, 1}) run.At(worker).CheckWeights(0, 2, {-2, -2});
  run.At(0)->SendPush(7, {1, 1}, 0, 2);
  run.At(0).CheckNothing();
  run.At(1)->SendPush(7, {3, 3}, 0, 2);
  for (const int worker : {0, 1}) run.At(worker).CheckWeights(0, 3, {-4, -4});
}

TEST_CASE("sync: the workers begin together, and a round is the mean of their gradients, applied once") {
  DrivenRun run(Driven(TrainMode::kSync), 2, /*enters=*/false);
  run.Enter(0);
  run.At(0).CheckNothing();
  run.Enter(1);
  run.At(0).CheckWeights(0, 0, {0, 0});
  run.At(1).CheckWeights(0, 0, {0, 0});
  run.At(1)->SendPush(5, {1, 2}, 0, 0);
  run.At(1)->SendPush(5, {1, 2}, 0, 0);  // repeated: neither applied nor answered yet
  run.At(1).CheckNothing();
  run.At(0)->SendPush(5, {3, 4}, 0, 0);
  run.At(0).CheckWeights(0, 1, {-2, -3});
  run.At(1).CheckWeights(0, 1, {-2, -3});
  run.At(1)->SendPush(5, {1, 2}, 0, 0);  // its answer was lost
  run.At(1).CheckWeights(0, 1, {-2, -3});
}

// Two workers in rounds, and a model of two blocks. The second block has five values and travels first.
struct RoundsOfTwoBlocks : DrivenRun {
  explicit RoundsOfTwoBlocks(WorkerLost lost) : DrivenRun(ConfigOf(lost), 2, /*enters=*/false) {
    for (const uint32_t block : {1u, 0u}) {
      for (const int worker : {0, 1}) {
        At(worker)->Send(5 - block, [&](auto& builder) {
          return wire::CreatePull(builder, block, true, builder.CreateVector(together));
        });
      }
    }
    for (const int worker : {0, 1, 0, 1}) CHECK(At(worker)->Expect<wire::Weights>()->version() == 0);
  }
  static Config ConfigOf(WorkerLost lost) {
    Config config = Driven(TrainMode::kSync);
    config.model.inputs = kBlockValues + 4;
    config.failure.worker_lost = lost;
    return config;
  }
};

TEST_CASE("sync: where the first request to a ps is lost, neither it nor the second is answered early") {
  Config config = Driven(TrainMode::kSync, 2, 2);
  config.model.inputs = 3 * kBlockValues;  // two blocks on each ps
  DrivenRun run(config, 2, /*enters=*/false, /*first=*/4);
  const auto enter = [&](int worker, size_t ps, uint64_t request) {
    run.At(worker).To(ps).Send(request, [&](auto& builder) {
      return wire::CreatePull(builder, request == 4 ? 1 : 0, true, builder.CreateVector(run.together));
    });
  };
  for (const int worker : {0, 1}) enter(worker, 0, 4), enter(worker, 0, 5);
  enter(0, 1, 5);             // 4 was lost
  enter(0, 1, 4);             // and comes again
  run.At(0).CheckNothing(1);  // the round waits for worker 1
  enter(0, 1, 5);
  run.At(0).CheckNothing(1);
  enter(1, 1, 4), enter(1, 1, 5);
  for (const int worker : {0, 1, 0, 1}) {
    const wire::Weights* weights = run.At(worker).To(1).Expect<wire::Weights>();
    REQUIRE(weights != nullptr);
    CHECK(weights->version() == 0);
  }
}

TEST_CASE("sync: a block is applied when all workers have sent it, whatever becomes of the rest") {
  const std::vector<float> first(kBlockValues, 1);  // lent to the ps
  RoundsOfTwoBlocks run(WorkerLost::kContinue);
  run.At(0)->SendPush(6, std::vector<float>(5, 1), 1, 0);
  run.At(0).CheckNothing();
  run.At(1)->SendPush(6, std::vector<float>(5, 3), 1, 0);
  for (const int worker : {0, 1}) run.At(worker).CheckWeights(0, 1, std::vector<float>(5, -2));
  run.At(1).Lose();
  run.At(0)->SendPush(7, first, 0, 0);
  run.At(0).CheckWeights(0, 1, std::vector<float>(kBlockValues, -1));
}

TEST_CASE("sync: where a lost worker is waited for no round is left half applied") {
  const std::vector<float> first(kBlockValues, 1);  // lent to the ps
  RoundsOfTwoBlocks run(WorkerLost::kWait);
  for (const int worker : {0, 1}) run.At(worker)->SendPush(6, std::vector<float>(5, 1), 1, 0);
  run.At(0).CheckNothing();
  for (const int worker : {0, 1}) run.At(worker)->SendPush(7, first, 0, 0);
  for (const int worker : {0, 1}) {
    run.At(worker).CheckWeights(0, 1, std::vector<float>(5, -1));
    run.At(worker).CheckWeights(0, 1, std::vector<float>(kBlockValues, -1));
  }
}

TEST_CASE("sync: a gradient that is too late for its round is dropped and answered with the next") {
  Config config = Driven(TrainMode::kSync);
  config.train.aggregate = 1;
  DrivenRun run(config);
  run.At(0)->SendPush(5, {1, 1}, 0, 0);
  run.At(0).CheckWeights(0, 1, {-1, -1});
  run.At(1)->SendPush(5, {50, 50}, 0, 0);
  run.At(1).CheckNothing();
  run.At(0)->SendPush(6, {1, 1}, 0, 1);
  run.At(0).CheckWeights(0, 2, {-2, -2});
  run.At(1).CheckWeights(0, 2, {-2, -2});
  run.At(1)->SendPush(6, {1, 1}, 0, 2);
  run.At(1).CheckWeights(0, 3, {-3, -3});
}

TEST_CASE("sync: a second gradient before the first is answered is refused, and the first still counts") {
  DrivenRun run(Driven(TrainMode::kSync));
  run.At(0)->SendPush(5, {1, 1}, 0, 0);
  run.At(0)->SendPush(6, {9, 9}, 0, 0);
  const wire::Refuse* refuse = run.At(0)->Expect<wire::Refuse>();
  REQUIRE(refuse != nullptr);
  CHECK(refuse->reason() == wire::Reason::BadRequest);
  run.At(1)->SendPush(5, {3, 3}, 0, 0);
  run.At(0).CheckWeights(0, 1, {-2, -2});
}

TEST_CASE("sync: a pull of a worker whose gradient waits is dropped") {
  DrivenRun run(Driven(TrainMode::kSync));
  run.At(0)->SendPush(5, {1, 1}, 0, 0);
  run.At(0)->Send(6, [](auto& builder) { return wire::CreatePull(builder, 0, true); });
  run.At(0).CheckNothing();
  run.At(1)->SendPush(5, {3, 3}, 0, 0);
  run.At(0).CheckWeights(0, 1, {-2, -2});
}

TEST_CASE("ssp: a worker counts from the start, also before its first pull") {
  DrivenRun run(Driven(TrainMode::kSsp), 2, /*enters=*/false);
  run.Enter(0);
  run.At(0).CheckWeights(0, 0, {0, 0});
  run.At(0)->SendPush(5, {1, 1});
  run.At(0).CheckNothing();
  run.Enter(1);
  run.At(1).CheckWeights(0, 1, {-1, -1});
  run.At(1)->SendPush(5, {1, 1});
  run.At(0).CheckWeights(0, 2, {-2, -2});
}

TEST_CASE("ssp: an empty gradient is not applied, and counts for the bound") {
  DrivenRun run(Driven(TrainMode::kSsp));
  run.At(0)->SendPush(5, {9, 9}, 0, 0, /*empty=*/true);
  run.At(0).CheckNothing();
  run.At(1)->SendPush(5, {1, 1});
  for (const int worker : {0, 1}) run.At(worker).CheckWeights(0, 1, {-1, -1});
}

TEST_CASE("ssp: nobody waits for a worker that has left, until it enters again, of tables too") {
  for (const bool table : {false, true}) {
    CAPTURE(table);
    Config config = Driven(TrainMode::kSsp);
    if (table) {
      config.model.inputs = 7;
      config.data.train.format = DataFormat::kLibsvm;
      config.data.train.path = {"rows.svm"};
    }
    DrivenRun run(config);
    const auto push = [&](int worker, uint64_t request) {
      if (!table) return run.At(worker)->SendPush(request, {1, 1});
      run.At(worker)->SendRows(request, {}, request - 1);  // the gradient of no rows
    };
    const auto answered = [&](int worker, uint64_t version) {
      const wire::Weights* weights = run.At(worker)->Expect<wire::Weights>();
      REQUIRE(weights != nullptr);
      CHECK(weights->version() == version);
    };
    run.At(1)->SendLeaves(5);
    answered(1, 0);
    for (const uint64_t step : {1, 2}) {
      push(0, 4 + step);
      answered(0, step);
    }
    run.At(1)->Send(6, [](auto& builder) { return wire::CreatePull(builder, 0, true, 0, 2); });
    answered(1, 2);
    push(0, 7);
    run.At(0).CheckNothing();
    push(1, 7);
    answered(0, 4);
    answered(1, 4);
  }
}

TEST_CASE("async: an answer waits for nobody") {
  DrivenRun run(Driven(TrainMode::kAsync));
  for (uint64_t step = 1; step <= 5; ++step) {
    run.At(0)->SendPush(4 + step, {1, 1});
    const auto value = -static_cast<float>(step);
    run.At(0).CheckWeights(0, step, {value, value});
  }
}

TEST_CASE("async: where tasks are started again the end waits for one with steps left") {
  Config config = Driven(TrainMode::kAsync);
  config.failure.restarts = 1;
  DrivenRun run(config);
  run.At(1).Lose();
  run.At(0)->Send(5, [](auto& builder) { return wire::CreateDone(builder, 0, 0.5f, 1, 2, 0, 0, 0); });
  REQUIRE(run.At(0)->Expect<wire::Ack>() != nullptr);
  run.At(0)->Send(6, [](auto& builder) { return wire::CreateWaitEnd(builder); });
  run.At(0).CheckNothing();
  Task& again = run.Again(1);
  CHECK_FALSE(again.Start().over());
  run.At(0).CheckNothing();
  again->Send(2, [](auto& builder) { return wire::CreateDone(builder, 0, 0.5f, 1, 2, 0, 0, 0); });
  REQUIRE(again->Expect<wire::Ack>() != nullptr);
  CHECK(run.At(0)->Expect<wire::End>() != nullptr);
}

TEST_CASE("ssp: each ps keeps an answer back for itself, whatever the gradients that others have") {
  Config config = Driven(TrainMode::kSsp, 2, 3);
  config.train.staleness = 1;
  DrivenRun run(config);
  std::vector<std::vector<float>> gradient;  // two values on two ps
  for (const Range& range : MakeLayout(config, 3).ps) gradient.emplace_back(range.size(), 1.0f);
  for (const size_t ps : {0, 1, 2}) {
    run.At(0).To(ps).SendPush(5, gradient[ps]);
    REQUIRE(run.At(0).To(ps).Expect<wire::Weights>()->version() == 1);
    run.At(0).To(ps).SendPush(6, gradient[ps]);
  }
  run.At(1).To(1).SendPush(5, gradient[1]);  // the connection to ps 1 is the faster one
  REQUIRE(run.At(0).To(1).Expect<wire::Weights>()->version() == 3);
  for (const size_t ps : {0, 2}) run.At(0).CheckNothing(ps);
  for (const size_t ps : {0, 2}) {
    run.At(1).To(ps).SendPush(5, gradient[ps]);
    REQUIRE(run.At(0).To(ps).Expect<wire::Weights>()->version() == 3);
  }
}

TEST_CASE("ssp: a newcomer counts from the slowest's count on, as soon as it is told so") {
  Config config = Driven(TrainMode::kSsp);
  config.cluster.min_workers = 1;
  DrivenRun run(config, 1);
  for (uint64_t step = 1; step <= 3; ++step) {
    run.At(0)->SendPush(4 + step, {1, 1});
    REQUIRE(run.At(0)->Expect<wire::Weights>()->version() == step);
  }
  Task& late = run.Again(1);
  const wire::Start& start = late.Start();
  CHECK(start.clock() == 3);
  CHECK(start.local_step() == 0);
  run.At(0)->SendPush(8, {1, 1});
  run.At(0).CheckNothing();
  late->SendPush(2, {1, 1});
  run.At(0).CheckWeights(0, 5, {-5, -5});
}

}  // namespace
}  // namespace dtrain
