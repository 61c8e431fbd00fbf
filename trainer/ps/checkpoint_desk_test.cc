#include "trainer/ps/checkpoint_desk.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/ps/ps_task_test_util.h"

namespace dtrain {
namespace {

using Names = std::vector<std::string>;

constexpr net::NodeId kSaver = 6;
constexpr RunId kRun{77, 1};

Config Saving(CheckpointWriter writer) {
  Config config = LinearCluster(2, 1, 100);
  config.checkpoint.dir = testing::NewDirectory();
  config.checkpoint.writer = writer;
  return config;
}

struct Ps0 : PsTaskFixture {
  explicit Ps0(const Config& of) : PsTaskFixture(of) { history.run = kRun; }
  // Whether the desk takes this as a question of the saver.
  template <typename Build>
  bool AsksSaver(Build&& build) {
    const net::Message question = Make(build);
    return desk().HandleSaver(kSaver, *net::Decode(question));
  }
  CheckpointDesk& desk() {
    if (!desk_) {
      desk_.emplace(CheckpointDesk::Parts{config, task.self, layout, shard, rule, members, outbox, history,
                                          log, &coordinator, nullptr});
    }
    return *desk_;
  }
  const wire::Checkpoints& Listed() {
    members.Worker(0)->node = 2;
    desk().OnListCheckpoints(*members.Worker(0), 5);
    CHECK(Last().envelope().request() == 5);
    return *Last().envelope().body_as_Checkpoints();
  }

  Coordinator coordinator{config, members, outbox, log, history};

 private:
  std::optional<CheckpointDesk> desk_;
};

Names NamesOf(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* strings) {
  Names names;
  for (const auto* string : *strings) names.push_back(string->str());
  return names;
}

TEST_CASE("checkpoint desk: without checkpoint.dir ps 0 gives pieces, and takes no other word of a saver") {
  for (const bool saves : {false, true}) {
    Ps0 ps(saves ? Saving(CheckpointWriter::kChief) : LinearCluster(2, 1, 100));
    CHECK(ps.AsksSaver([](auto& builder) { return wire::CreateReadCut(builder, 1, 0); }));
    CHECK(ps.Last().to == kSaver);
    CHECK(ps.Last().envelope().body_as_Refuse()->reason() == wire::Reason::NotReady);
    CHECK(ps.AsksSaver([](auto& builder) { return wire::CreateAskSave(builder, 0, 0); }) == saves);
    CHECK(ps.AsksSaver([](auto& builder) { return wire::CreateConfirmSave(builder, 1, 0); }) == saves);
    CHECK_FALSE(ps.AsksSaver([](auto& builder) { return wire::CreatePull(builder); }));
    CHECK_FALSE(ps.desk().writing());
  }
}

TEST_CASE(
    "checkpoint desk: where the ps write, their directory's checkpoints are listed, and what are none") {
  for (const CheckpointWriter writer : {CheckpointWriter::kPs, CheckpointWriter::kChief}) {
    const Config config = Saving(writer);
    CheckpointDirectory directory(config.checkpoint.dir);
    testing::SaveSmall(&directory, testing::SmallCheckpoint());
    std::filesystem::create_directory(config.checkpoint.dir + "/step-000000007");
    Ps0 ps(config);
    const wire::Checkpoints& listed = ps.Listed();
    const bool shared = writer == CheckpointWriter::kPs;
    CHECK(NamesOf(listed.names()) == (shared ? Names{"step-000012000"} : Names{}));
    REQUIRE(NamesOf(listed.unreadable()).size() == (shared ? 1 : 0));
    if (shared) CHECK(listed.unreadable()->Get(0)->str().rfind("step-000000007: ", 0) == 0);
  }
}

// ps 1, which ps 0 has let in.
struct Ps1 : PsTaskFixture {
  explicit Ps1(const Config& of) : PsTaskFixture(of, 1) {
    const net::Message welcome = encoder.Finish(kRun.Envelope(0), wire::CreateWelcome(encoder.Begin(), 100));
    uplink.Handle(*net::Decode(welcome));
    std::filesystem::create_directory(temporary);
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
  const std::string temporary =
      CheckpointDirectory(config.checkpoint.dir).TemporaryPath(kStep, SaveToken(kRun.id, 1));
  Activity activity;
  Uplink uplink{task, activity, rule, history};
  CheckpointDesk desk{
      {config, task.self, layout, shard, rule, members, outbox, history, log, nullptr, &uplink}};
};

TEST_CASE("checkpoint desk: another ps writes its part once all have cut, once, and tells its checksums") {
  Ps1 ps(Saving(CheckpointWriter::kPs));
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
  Ps1 ps(Saving(CheckpointWriter::kPs));
  std::filesystem::remove(ps.temporary);
  ps.Cut(1, false);
  ps.Cut(1, true);
  ps.WaitForPart();
  CHECK_FALSE(ps.Told().written());
  REQUIRE(ps.Told().error() != nullptr);
  CHECK(ps.Told().error()->str().find(ShardName(1, 2)) != std::string::npos);
}

TEST_CASE(
    "checkpoint desk: nothing is written of a range that is not kept, or that the chief's saver reads") {
  for (const CheckpointWriter writer : {CheckpointWriter::kPs, CheckpointWriter::kChief}) {
    Ps1 ps(Saving(writer));
    if (writer == CheckpointWriter::kChief) ps.Cut(1, false);
    ps.Cut(1, true);
    CHECK_FALSE(ps.desk.writing());
    CHECK_FALSE(ps.Told().written());
  }
}

}  // namespace
}  // namespace dtrain
