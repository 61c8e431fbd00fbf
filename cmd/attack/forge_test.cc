// Strangers who pretend to be a task, or to speak for one: they save nothing, stop nothing and end nothing.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include "cmd/testing/honest_run.h"
#include "trainer/config/config.h"
#include "trainer/result/run_summary.h"

namespace dtrain::testing {
namespace {

constexpr milliseconds kAnswer{2000};  // for answers that come at once

// What a member may say and a stranger may not, one after the other.
void Forge(Stranger& stranger) {
  const auto beat = [](auto& builder) {
    return wire::CreateHeartbeat(builder, builder.CreateString("serve"), 1, builder.CreateString(""), 0, 0, 0,
                                 SIGTERM, builder.CreateString("host:/forged/step-000000007"), 7);
  };
  const auto abort = [](wire::Role role, uint32_t index) {
    return [role, index](auto& builder) {
      return wire::CreateAbort(builder, 3, role, index, builder.CreateString("forged"));
    };
  };
  stranger.Send(0, beat);
  stranger.Send(0, abort(wire::Role::Worker, 0));
  stranger.Send(0, abort(wire::Role::Ps, 0));
  stranger.Send(0, [](auto& builder) {
    return wire::CreateAbort(builder, 128 + SIGTERM, wire::Role::Ps, 0, builder.CreateString("forged"),
                             builder.CreateString("{}"));
  });
  for (const uint64_t request : {uint64_t{1}, uint64_t{1} << 40, ~uint64_t{0}}) {
    stranger.Send(request, [](auto& builder) {
      return wire::CreateHookRequest(builder, true, builder.CreateString("forged"));
    });
    stranger.Send(request, [](auto& builder) { return wire::CreateDone(builder, 9, 0.5, 1, 2); });
    stranger.Send(request, [](auto& builder) {
      return wire::CreateEvaluatedDirect(builder, 0, 9, "{}", R"({"loss":0.5})");
    });
    stranger.Send(request, [](auto& builder) { return wire::CreateWaitEnd(builder, 1); });
    stranger.Send(request, [](auto& builder) { return wire::CreateBye(builder); });
    stranger.Send(request, [](auto& builder) { return wire::CreateReady(builder, true, 1 << 20, 1); });
  }
}

// What ps 0 orders another ps, and what that reports.
void Order(Stranger& stranger) {
  stranger.Send(0, [](auto& builder) {
    return wire::CreateOrder(builder, wire::CreateFill(builder, 99, 0, 1 << 20, 0, true));
  });
  stranger.Send(0, [](auto& builder) {
    return wire::CreateOrder(builder, 0, wire::CreateSnapshotOrder(builder, 99, 0, false, 7, true));
  });
  stranger.Send(0, [](auto& builder) { return wire::CreateReadPiece(builder, 99, 0, 0); });
  stranger.Send(0, [](auto& builder) { return wire::CreateReadPiece(builder, 1, 0, 0); });
  stranger.Send(0, [](auto& builder) { return wire::CreateOrder(builder, 0, 0, true); });
  stranger.Send(0, [](auto& builder) {
    const std::vector<uint64_t> sums = {1, 2, 3};
    return wire::CreateReport(builder, wire::CreateFilled(builder, 1, 0, true),
                              wire::CreateSnapshotState(builder, 1, true, 0, builder.CreateVector(sums)));
  });
}

// Whether an answer has what only a task of the run may have.
bool HearsOfTheRun(Stranger& stranger) {
  while (const wire::Envelope* answer = stranger.Receive(milliseconds(300))) {
    switch (answer->body_type()) {
      case wire::Body::Refuse:
      case wire::Body::Heartbeat:
        continue;
      default:
        MESSAGE(wire::EnumNameBody(answer->body_type()));
        return true;
    }
  }
  return false;
}

TEST_CASE("attack: what a stranger says in the name of a task stops and ends nothing") {
  HonestRun run;
  // One that has not joined, one that knows the run's id, and one whose routing id is nearly another's.
  for (const RunId known : {RunId(), run.run()}) {
    for (const net::NodeId mark : {net::NodeId{0}, net::NodeId{1}}) {
      Stranger stranger(run.address(), (net::NewNodeId() & ~net::NodeId{1}) | mark);
      stranger.set_run(known);
      Forge(stranger);
      Order(stranger);
      CHECK_FALSE(HearsOfTheRun(stranger));
    }
  }
  run.CheckGoesOn();
  CHECK_FALSE(Contains(run.ps().standard_error(), "/forged/"));
  run.CheckEnds();
}

TEST_CASE("attack: who says Hello with the index of a task that is there is not let in, and harms it not") {
  HonestRun run;
  HelloWords words = run.Words();
  words.index = 0;
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 8; ++i) {
    strangers.push_back(std::make_unique<Stranger>(run.address()));
    Stranger& stranger = *strangers.back();
    for (int again = 0; again < 20; ++again) stranger.Send(EncodeHello(words));
    stranger.set_run(run.run());
    Forge(stranger);
  }
  for (const auto& stranger : strangers) CHECK_FALSE(HearsOfTheRun(*stranger));
  run.CheckGoesOn();
  run.CheckEnds();
}

TEST_CASE("attack: a member that speaks as a ps, or of another task, moves nothing but itself") {
  HonestRun run;
  Stranger member(run.address());
  REQUIRE(member.Join(run.Words(), kAnswer));
  Order(member);
  // Evaluations that nobody asked for.
  EvaluationFigures figures;
  figures.rows = 9;
  figures.loss = -1e300;
  const std::string text = EvaluationToJson(figures);
  for (uint64_t request = 1; request < 4; ++request) {
    member.Send(request, [&](auto& builder) {
      return wire::CreateEvaluatedDirect(builder, 9, 9, nullptr, text.c_str());
    });
  }
  run.CheckGoesOn();
  // An Abort that names worker 0: the sender leaves, and nobody else.
  member.Send(0, [](auto& builder) {
    return wire::CreateAbort(builder, 1, wire::Role::Worker, 0, builder.CreateString("forged"));
  });
  run.CheckGoesOn();
  run.CheckEnds();
}

// A cluster where only ps 0 is honest: ps 1 and the worker are strangers.
struct HollowRun {
  Cluster cluster;
  const Config config = LoadConfig(cluster.config(), {}, {});
  std::unique_ptr<Process> ps = cluster.Start("ps", 0);
  Stranger other{cluster.address("ps", 0)}, worker{cluster.address("ps", 0)};
  bool pretended = false;  // ps 0 has told ps 1 to write, which said that it has

  // `sees_directory`: ps 1 says that it writes its part itself.
  HollowRun(const HonestJob& job, bool sees_directory)
      : cluster(2, 1,
                job.model + job.data + "train: {steps: 1000, batch_size: 8}\ncheckpoint: {dir: " +
                    NewDirectory() + "/ckpt}\n" + job.more) {
    HelloWords words;
    words.settings = RunSettings(config);
    words.role = wire::Role::Ps;
    words.index = 1;
    REQUIRE(other.Join(words, kPatience));
    words.role = wire::Role::Worker;
    words.index = 0;
    REQUIRE(worker.Join(words, kPatience));
    other.Send(
        1, [&](auto& builder) { return wire::CreateReady(builder, false, 0, 0, 0, 0, 0, sees_directory); });
    worker.Send(1, [](auto& builder) { return wire::CreateReady(builder); });
  }
  // ps 1 answers orders as if it did what they say, until ps 0 says nothing for a while. Returns the number
  // of the checkpoint when ps 0 asks for a piece of one; 0: it does not.
  uint64_t PretendToWrite() {
    while (const wire::Envelope* const envelope = other.Receive(milliseconds(1000))) {
      if (const auto* const read = envelope->body_as_ReadPiece()) return read->number();
      if (const auto* const order = envelope->body_as_Order()) CarryOut(*order);
    }
    return 0;
  }
  void CarryOut(const wire::Order& order) {
    if (const wire::Fill* const fill = order.fill()) {
      const uint64_t number = fill->number();
      const bool keep = fill->keep();
      other.Send(0, [&](auto& builder) {
        return wire::CreateReport(builder, wire::CreateFilled(builder, number, 0, keep));
      });
    }
    const wire::SnapshotOrder* const snapshot = order.snapshot();
    if (snapshot == nullptr || snapshot->drop()) return;
    const uint64_t number = snapshot->number();
    const bool write = snapshot->write();
    pretended = pretended || write;
    other.Send(0, [&](auto& builder) {
      const std::vector<uint64_t> made_up(2, 0x1234567890abcdef);  // weights and bias: two pieces
      const auto sums = write ? builder.CreateVector(made_up) : 0;
      return wire::CreateReport(builder, 0, wire::CreateSnapshotState(builder, number, write, 0, sums));
    });
  }
};

TEST_CASE("attack: a checkpoint whose part a false ps only pretends to have written is not saved") {
  HollowRun run(HonestJob(), true);
  run.PretendToWrite();
  run.worker.Send(0, [](auto& builder) {
    return wire::CreateHeartbeat(builder, builder.CreateString("step"), 1, builder.CreateString(""), 0, 0, 0,
                                 SIGTERM);
  });
  run.PretendToWrite();
  run.ps->Signal(SIGTERM);
  run.PretendToWrite();
  REQUIRE(run.ps->WaitForEnd());
  REQUIRE(run.pretended);
  const std::string said = run.ps->standard_error();
  CAPTURE(said);
  if (Contains(said, "| saved ")) CHECK(NamesGoodCheckpoint(said, "| saved "));
  if (run.ps->exit_code() == 128 + SIGTERM) CHECK(NamesGoodCheckpoint(said, "the newest checkpoint is "));
}

TEST_CASE("attack: pieces of a checkpoint that nobody asked for fill neither memory nor the disk") {
  HonestJob job;
  job.model = "model: {kind: mlp, inputs: 784, outputs: 10, hidden: [4000]}\n";
  job.data = "data: {train: {format: synthetic, name: digits, rows: 600}}\n";
  job.more = fmt::format("failure: {{detect_s: {}}}\n", kDetect.count());
  HollowRun run(job, false);
  const uint64_t number = run.PretendToWrite();
  REQUIRE(number != 0);
  const int64_t before_kib = MemoryKib(run.ps->pid(), "VmRSS");
  const std::vector<float> values(1 << 18, 1.0F);
  net::Encoder encoder;
  // The first piece never comes, so that none can be written.
  for (uint64_t piece = 1; piece < 300; ++piece) {
    run.other.Send(encoder.Piece(run.other.run().Envelope(0), number + piece / 200, 0, piece, 0,
                                 {values.data(), values.size() * sizeof(float), nullptr, nullptr}));
  }
  run.other.ReceiveA<wire::End>(milliseconds(500));  // until ps 0 has read them
  [[maybe_unused]] const int64_t grown_mib = (MemoryKib(run.ps->pid(), "VmHWM") - before_kib) / 1024;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep freed memory
  CHECK(grown_mib <= 20 + 8);  // ps 0 asks for 8 pieces of 1 MiB at a time
#endif
  run.ps->Signal(SIGTERM);
  REQUIRE(run.ps->WaitForEnd());
  CHECK_FALSE(Contains(run.ps->standard_error(), "| saved "));
}

// Two ps, both honest, and strangers at ps 1, whose leader is elsewhere.
TEST_CASE("attack: a ps takes no orders from, and gives no pieces to, who is not its leader") {
  const std::string checkpoints = NewDirectory() + "/ckpt";
  const Cluster cluster(2, 1, EndlessJob() + "checkpoint: {dir: " + checkpoints + "}\n");
  const auto ps0 = cluster.Start("ps", 0), ps1 = cluster.Start("ps", 1), worker = cluster.Start("worker", 0);
  REQUIRE(worker->WaitForLine("local step "));
  const std::string said = ps0->standard_error();
  RunId run;
  run.id = std::stoull(said.substr(said.find("run id ") + 7, 16), nullptr, 16);
  Stranger stranger(cluster.address("ps", 1));
  stranger.set_run(run);
  Order(stranger);
  Forge(stranger);
  CHECK_FALSE(HearsOfTheRun(stranger));
  const std::string before = worker->standard_error();
  CHECK(worker->WaitForLine(
      fmt::format("local step {:>9} ", std::atoll(before.c_str() + before.rfind("local step ") + 11) + 400)));
  ps0->Signal(SIGTERM);
  CheckEnd(*ps0, 128 + SIGTERM);
  CheckEnd(*ps1, 128 + SIGTERM);
  CheckEnd(*worker, 128 + SIGTERM);
  CHECK(NamesGoodCheckpoint(ps0->standard_error(), "the newest checkpoint is "));
}

}  // namespace
}  // namespace dtrain::testing
