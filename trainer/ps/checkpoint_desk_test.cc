#include "trainer/ps/checkpoint_desk.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/ps/ps_task_test_util.h"
#include "trainer/ps/shared_directory.h"

namespace dtrain {
namespace {

using Names = std::vector<std::string>;

constexpr RunId kRun{77, 1};

Config Saving() {
  Config config = LinearCluster(2, 1, 100);
  config.checkpoint.dir = testing::NewDirectory();
  return config;
}

struct Ps0 : PsTaskFixture {
  explicit Ps0(const Config& of) : PsTaskFixture(of) { history.run = kRun; }
  Coordinator coordinator{config, members, outbox, log, history};
  CheckpointDesk MakeDesk() {
    return CheckpointDesk(
        {config, task.self, layout, shard, rule, members, outbox, history, log, &coordinator, nullptr});
  }
};

TEST_CASE("checkpoint desk: ps 0 holds checkpoint.dir while it serves, and shows it by the name of its run") {
  Ps0 without(LinearCluster(2, 1, 100));
  CHECK(without.MakeDesk().directory() == nullptr);
  const Config config = Saving();
  Ps0 ps(config);
  {
    const CheckpointDesk desk = ps.MakeDesk();
    REQUIRE(desk.directory() != nullptr);
    CHECK(std::filesystem::exists(desk.directory()->TemporaryPath(0, SaveToken(kRun, 0))));
    Ps0 other(config);
    CHECK_THROWS_AS(other.MakeDesk(), UserError);
    other.history.begun = true;
    CHECK_THROWS_AS(other.MakeDesk(), PeerLost);
  }
  CHECK(testing::NamesIn(config.checkpoint.dir).empty());
}

// ps 1, which ps 0 has let in.
struct Ps1 : PsTaskFixture {
  explicit Ps1(const Config& of, bool sees = true) : PsTaskFixture(of, 1) {
    if (sees) std::filesystem::create_directories(directory.TemporaryPath(0, SaveToken(kRun, 0)));
    const net::Message welcome =
        encoder.Finish(kRun.Envelope(0), wire::CreateWelcome(encoder.Begin(), 100, true));
    uplink.Handle(*net::Decode(welcome));
    std::filesystem::create_directories(temporary);
  }
  void Cut(uint64_t number, bool write) {
    const net::Message cut =
        Make([&](auto& builder) { return wire::CreateCut(builder, number, 0, false, kStep, write); });
    desk.OnCut(*net::Decode(cut)->body_as_Cut());
  }
  // What ps 0 was told last.
  const wire::CutState& Told() const { return *Last().envelope().body_as_CutState(); }
  void WaitForPart() {
    PollUntil([&] {
      desk.Tick(Clock::now());
      return !desk.writing();
    });
  }

  static constexpr int64_t kStep = 30;
  const CheckpointDirectory directory{config.checkpoint.dir};
  const std::string temporary = directory.TemporaryPath(kStep, SaveToken(kRun, 1));
  Activity activity;
  Uplink uplink{task, activity, rule, history};
  CheckpointDesk desk{
      {config, task.self, layout, shard, rule, members, outbox, history, log, nullptr, &uplink}};
};

TEST_CASE("checkpoint desk: another ps writes its part once all have cut, once, and tells its checksums") {
  Ps1 ps(Saving());
  ps.Cut(1, /*write=*/false);
  CHECK(ps.Told().number() == 1);
  CHECK_FALSE(ps.Told().written());
  CHECK_FALSE(ps.desk.writing());
  ps.Cut(1, true);
  CHECK(ps.desk.writing());
  CHECK_FALSE(ps.Told().written());
  ps.WaitForPart();
  REQUIRE(ps.Told().written());
  CHECK(ps.Told().error() == nullptr);
  CHECK(ps.Told().checksums()->size() == PiecesOf(ps.layout, 1, 0).size());
  CHECK(testing::NamesIn(ps.temporary) == Names{ShardName(1, 2)});
  const size_t told = ps.channel.sent.size();
  ps.Cut(1, true);  // ps 0 has not heard of it
  CHECK_FALSE(ps.desk.writing());
  CHECK(ps.channel.sent.size() == told + 1);
  CHECK(ps.Told().written());
}

TEST_CASE("checkpoint desk: a part that cannot be written is told with its reason") {
  Ps1 ps(Saving());
  std::filesystem::remove_all(ps.temporary);
  ps.Cut(1, false);
  ps.Cut(1, true);
  ps.WaitForPart();
  CHECK_FALSE(ps.Told().written());
  REQUIRE(ps.Told().error() != nullptr);
  CHECK(ps.Told().error()->str().find(ShardName(1, 2)) != std::string::npos);
}

TEST_CASE("checkpoint desk: nothing is written of a range that is not kept, or where ps 0 pulls it") {
  for (const bool sees : {true, false}) {
    Config config = Saving();
    if (!sees) config.checkpoint.dir = config.checkpoint.dir + "/of-another-disk";
    Ps1 ps(config, sees);
    CHECK(ps.uplink.sees_directory() == sees);
    if (!sees) ps.Cut(1, false);
    ps.Cut(1, true);
    CHECK_FALSE(ps.desk.writing());
    CHECK_FALSE(ps.Told().written());
  }
}

TEST_CASE("checkpoint desk: a ps gives ps 0 the pieces of its cut") {
  Ps1 ps(Saving());
  ps.Cut(1, false);
  const net::Message question = ps.Make([](auto& builder) { return wire::CreateReadPiece(builder, 1, 0); });
  ps.desk.OnReadPiece(6, *net::Decode(question)->body_as_ReadPiece());
  CHECK(ps.Last().to == 6);
  const wire::Piece* piece = ps.Last().envelope().body_as_Piece();
  REQUIRE(piece != nullptr);
  CHECK(piece->number() == 1);
}

}  // namespace
}  // namespace dtrain
