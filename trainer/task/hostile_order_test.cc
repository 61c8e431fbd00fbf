// Valid messages in an order that no dtrain sends, from a task that has joined: nothing aborts, the weights
// change by granted gradients only, and the run of the others goes on to its end.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "base/testing/files.h"
#include "trainer/task/raw_worker_test_util.h"

namespace dtrain {
namespace {

constexpr int kMessages = 3000;

// Sends a random message, as a worker or as a ps would, under a number that it may or may not have.
class Hostile {
 public:
  Hostile(RawWorker& worker, uint64_t seed) : worker_(worker), random_(seed) {}

  void Say() {
    const uint64_t request = Number();
    const uint64_t any = Pick(4) == 0 ? ~uint64_t{0} : Pick(5);
    const auto block = static_cast<uint32_t>(Pick(3));
    const auto send = [&](auto&& build) { worker_.Send(request, build); };
    switch (Pick(20)) {
      case 0:
        return worker_.SendPush(request, {1, 2}, block, any, Pick(2) == 0);
      case 1:
        return worker_.SendPush(request, {1, 2, 3}, block, any);
      case 2:
        return send([&](auto& b) {
          return wire::CreatePull(b, block, false, 0, 0, false, 0, 0, 0, false, 0, Pick(2) == 0);
        });
      case 3:
        return send([&](auto& b) {
          const std::vector<uint32_t> together = {0, 7, 0xffffffff};
          const auto list = b.CreateVector(together);
          return wire::CreatePull(b, block, true, list, any, Pick(2) == 0, any);
        });
      case 4:
        return send([&](auto& b) { return wire::CreateNeedStep(b, Pick(2) == 0); });
      case 5:
        return send([&](auto& b) {
          return wire::CreateDone(b, any, -1e38f, -1, 1, any, any, 7, b.CreateString("{\"steps\":1e999}"));
        });
      case 6:
        return send([&](auto& b) {
          return wire::CreateEvaluatedDirect(b, Pick(2), any, "[7]", R"({"rows":-1,"loss":-1e308})", any,
                                             any);
        });
      case 7:
        return send([&](auto& b) {
          return wire::CreateWaitEnd(b, any, b.CreateVector(std::vector<uint64_t>(10, any)), Pick(2) == 0);
        });
      case 8:
        return send([&](auto& b) { return wire::CreateHookRequest(b, true); });
      case 9:
        return send([&](auto& b) {
          const auto filled =
              wire::CreateFilled(b, Pick(3), Pick(2) == 0 ? 0 : b.CreateString("damaged"), true);
          const auto sums = b.CreateVector(std::vector<uint64_t>(3, any));
          const auto state = wire::CreateSnapshotState(b, Pick(3), true, 0, sums);
          const auto parts = b.CreateVector(std::vector<flatbuffers::Offset<wire::Part>>());
          const auto list = wire::CreateChecksumList(b, parts, any, any);
          return wire::CreateReport(b, filled, state, list, wire::CreateTakenState(b, block, any, any, any));
        });
      case 10:
        return send([&](auto& b) { return wire::CreateReadPiece(b, Pick(3), any); });
      case 11:
        return send([&](auto& b) { return wire::CreatePiece(b, Pick(3), any); });
      case 12:
        return send([&](auto& b) { return wire::CreateRound(b, any, 0, 0, 7.0); });
      case 13:
        return send([&](auto& b) { return wire::CreateStart(b, 7, true, any); });
      case 14:
        return send([&](auto& b) { return wire::CreateGrant(b, 7, true, any, true); });
      case 15:
        return send([&](auto& b) { return wire::CreateEnd(b, b.CreateString("{}")); });
      case 16:
        return send([&](auto& b) {
          const auto snapshot = wire::CreateSnapshotOrder(b, any, any);
          return wire::CreateOrder(b, 0, snapshot, false, wire::CreateIncarnation(b, 0, any));
        });
      case 17:
        return send([&](auto& b) { return wire::CreateRefuse(b, wire::Reason::Run, b.CreateString("no")); });
      case 18:
        return send([&](auto& b) { return wire::CreateNeedBatch(b, block, any, true, any); });
      default:
        return send([](auto& b) { return wire::CreateAck(b); });
    }
  }

 private:
  uint64_t Pick(uint64_t choices) { return random_.Bits(++drawn_) % choices; }
  // Mostly the next number; or an old one, none, or one beyond.
  uint64_t Number() {
    switch (Pick(6)) {
      case 0:
        return Pick(last_ + 1);
      case 1:
        return last_ + 2 + Pick(100);
      default:
        return ++last_;
    }
  }

  RawWorker& worker_;
  const CounterRandom random_;
  uint64_t drawn_ = 0;
  uint64_t last_ = 0;
};

// Worker 0 trains alone; worker 1 joins, is never told to start, and says what it likes.
Config OneTrains(TrainMode mode, int ps) {
  Config config = Driven(mode, 2, ps);
  config.cluster.min_workers = 1;
  config.checkpoint.dir = testing::NewDirectory();
  return config;
}

TEST_CASE(
    "hostile order: one that joins and never starts changes no weights and keeps nobody from training") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      CAPTURE(static_cast<int>(mode));
      CAPTURE(seed);
      DrivenRun run(OneTrains(mode, 1), /*workers=*/1);
      RawWorker other(run.config, run.transport, 1);
      other.Join();
      Hostile hostile(other, seed);
      RawWorker& honest = *run.At(0);
      std::vector<float> expected = {0, 0};
      for (uint64_t step = 1; step <= 10; ++step) {
        for (int i = 0; i < kMessages / 10; ++i) hostile.Say();
        while (other.Receive(milliseconds(0)) != nullptr) {
        }
        honest.SendPush(4 + step, {1, 2}, 0, step - 1);
        const wire::Weights* weights = honest.Expect<wire::Weights>();
        REQUIRE(weights != nullptr);
        CHECK(weights->version() == step);
        expected = {expected[0] - 1, expected[1] - 2};
        CHECK(honest.Values(*weights) == expected);
      }
    }
  }
}

}  // namespace
}  // namespace dtrain
