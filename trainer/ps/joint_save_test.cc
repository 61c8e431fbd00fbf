#include "trainer/ps/joint_save.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/ps/ps_test_util.h"
#include "trainer/ps/shared_directory.h"
#include "trainer/testing/file_limit.h"

namespace dtrain {
namespace {

using testing::NamesIn;
using Names = std::vector<std::string>;
using Checksums = std::vector<uint64_t>;

constexpr RunId kRun{0x1122334455667788, 2};
constexpr int64_t kSlots = 2;

Config Adam() {
  Config config = LinearCluster(2, 1, 100);
  config.model.inputs = 4000;
  config.train.optimizer.kind = OptimizerKind::kAdam;
  config.checkpoint.dir = testing::NewDirectory();
  config.checkpoint.keep = 1;
  return config;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// ps 0's side, and of ps 1 what it writes and tells.
struct Joint {
  void Begin(uint64_t number, int64_t step) {
    begun = SavedMoment{kRun.id, kRun.epoch, step, "{}"};
    save.Begin(number, begun, ps0.shard.TakeCut(), {false, pulled});
  }
  void BeginAndWait(uint64_t number, int64_t step) {
    Begin(number, step);
    PollUntil([&] {
      CHECK_FALSE(save.Poll());
      return save.writing();
    });
  }
  std::string Temporary(uint64_t number) const {
    return directory.TemporaryPath(begun.step, SaveToken(kRun, number));
  }
  Checksums WritePart1(uint64_t number) {
    ShardSaver saver(ps1.layout, 1, kSlots);
    saver.Begin(number, ps1.shard.TakeCut(), Temporary(number));
    PollUntil([&] { return saver.Poll(); });
    REQUIRE(saver.Of(number)->error == "");
    return saver.Of(number)->checksums;
  }
  // What ps 1 says of its part.
  void Tell(uint64_t number, bool written, const Checksums& checksums, const std::string& error = "") {
    const net::Message state = ps1.Make([&](auto& builder) {
      const auto why = error.empty() ? 0 : builder.CreateString(error);
      return wire::CreateCutState(builder, number, written, why, builder.CreateVector(checksums));
    });
    save.OnPart(1, "ps 1 on there", *net::Decode(state)->body_as_CutState());
  }
  void Asked(size_t ps, uint64_t number, int64_t piece) {
    CHECK(ps == 1);
    CHECK(number == 1);
    asked.push_back(piece);
  }
  // ps 1 answers what it was asked.
  void Answer() {
    for (const int64_t piece : std::exchange(asked, {})) {
      save.OnPiece(1, ps1.encoder.Piece({}, 1, static_cast<uint64_t>(piece), 0, *cut->Lend(piece)));
    }
  }
  JointSave::Outcome End() {
    return *PollUntil([&] { return save.Poll(); });
  }
  JointSave::Outcome Save(uint64_t number, int64_t step) {
    BeginAndWait(number, step);
    Tell(number, true, WritePart1(number));
    return End();
  }
  Names There() const { return NamesIn(config.checkpoint.dir); }
  std::string PathOf(const std::string& name) const { return directory.PathOf(name); }

  const Config config = Adam();
  PsFixture ps0{config, 0}, ps1{config, 1};
  CheckpointDirectory directory{config.checkpoint.dir};
  Logger log{"ps 0", LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}};
  JointSave save{ps0.config,
                 ps0.layout,
                 directory,
                 "ps 0 on here",
                 [this](size_t ps, uint64_t number, int64_t piece) { Asked(ps, number, piece); },
                 log};
  bool pulled = false;            // the part of ps 1
  std::vector<int64_t> asked;     // pieces of it
  std::shared_ptr<RangeCut> cut;  // of ps 1
  SavedMoment begun;
};

TEST_CASE("joint save: with all parts there the checkpoint has its name, and all values of the moment") {
  Joint f;
  std::vector<float> expected(static_cast<size_t>(f.ps0.layout.size));
  for (const Range& range : f.ps0.layout.ps) {
    InitialValues(f.config.model, f.ps0.layout, range, expected.data() + range.begin);
  }
  f.BeginAndWait(1, 12);
  f.ps0.Update();
  const Checksums checksums = f.WritePart1(1);
  CHECK(f.save.Wants(1));
  f.Tell(1, true, checksums);
  CHECK_FALSE(f.save.Wants(1));
  const JointSave::Outcome outcome = f.End();
  CHECK(outcome.error == "");
  CHECK(outcome.path == f.PathOf("step-000000012"));
  CHECK_FALSE(f.save.Poll());
  CHECK_FALSE(f.save.writing());
  CHECK(f.There() == Names{"step-000000012"});
  CheckpointReader reader(outcome.path);
  reader.Verify();
  CHECK(reader.manifest().run_id == kRun.id);
  CHECK(reader.manifest().step == 12);
  CHECK(reader.manifest().positions == "{}");
  for (const Variable& variable : f.ps0.layout.variables) {
    std::vector<float> values(static_cast<size_t>(variable.size()));
    reader.Read(variable.name, CheckpointReader::kWeights, 0, variable.size(), values.data());
    CHECK(std::equal(values.begin(), values.end(), expected.begin() + variable.offset));
  }
}

TEST_CASE("joint save: nothing is published before every ps has said that its part is on the disk") {
  Joint f;
  f.Begin(1, 12);
  f.Tell(1, true, {});  // of whatever it speaks: nobody was told to write yet
  CHECK(f.save.Wants(1));
  PollUntil([&] {
    f.save.Poll();
    return !f.save.Wants(0);
  });
  const Checksums checksums = f.WritePart1(1);
  f.Tell(1, false, checksums);
  CHECK(f.save.Wants(1));
  CHECK_FALSE(f.save.Poll());
  CHECK(f.save.writing());
  f.Tell(1, true, checksums);
  CHECK_FALSE(f.save.writing());
  f.Tell(1, true, {});  // it was heard
  CHECK(f.End().error == "");
  CheckpointReader(f.PathOf("step-000000012")).Verify();
  f.Tell(1, true, checksums);
  CHECK_FALSE(f.save.Poll());
  f.Begin(2, 13);
  CHECK(f.save.Wants(0));
  CHECK(f.save.Wants(1));
}

TEST_CASE("joint save: a part without one of its checksums is no part, and nothing of the save stays") {
  Joint f;
  for (uint64_t number = 1; number <= 2; ++number) {
    f.BeginAndWait(number, 12);
    Checksums checksums = f.WritePart1(number);
    number == 1 ? checksums.pop_back() : checksums.push_back(1);
    f.Tell(number, true, checksums);
    const JointSave::Outcome outcome = f.End();
    CHECK(outcome.path == "");
    CHECK(Contains(outcome.error, "ps 0 on here: "));
    CHECK(f.There().empty());
  }
  CHECK(f.Save(3, 12).error == "");
}

TEST_CASE("joint save: a ps that cannot write gives up the save by its name; the next one is made") {
  Joint f;
  CHECK(f.Save(1, 1).error == "");
  f.BeginAndWait(2, 12);
  f.Tell(2, false, {}, "no room");
  const JointSave::Outcome outcome = f.End();
  CHECK(outcome.path == "");
  CHECK(outcome.error == "ps 1 on there: no room");
  CHECK(f.There() == Names{"step-000000001"});
  CHECK(f.Save(3, 13).path == f.PathOf("step-000000013"));
}

TEST_CASE("joint save: ps 0 that cannot write its own part, or make the directory, is named too") {
  Joint f;
  {
    const FileLimit full(100);
    f.Begin(1, 12);
    const JointSave::Outcome outcome = f.End();
    CHECK(Contains(outcome.error, "ps 0 on here: "));
    CHECK(Contains(outcome.error, "shard-0-of-2"));
    CHECK(Contains(outcome.error, "File too large"));
  }
  CHECK(f.There().empty());
  std::filesystem::remove(f.config.checkpoint.dir);
  f.Begin(2, 13);
  const JointSave::Outcome outcome = f.End();
  CHECK(Contains(outcome.error, "ps 0 on here: " + f.config.checkpoint.dir));
  CHECK(Contains(outcome.error, "No such file or directory"));
}

TEST_CASE("joint save: what others write, and what another one of the same name writes, is left alone") {
  Joint f;
  CheckpointDirectory others(f.config.checkpoint.dir);
  const std::string of_other_run = others.BeginSave(12, SaveToken({kRun.id + 1, 2}, 1));
  CHECK(f.Save(1, 12).error == "");
  CHECK(std::filesystem::exists(of_other_run));
  const std::string same = others.BeginSave(12, SaveToken(kRun, 2));
  f.Begin(2, 12);
  CHECK(Contains(f.End().error, same + ": another process writes it"));
  CHECK(std::filesystem::exists(same));
}

TEST_CASE("joint save: what a dead writer left under its very path goes") {
  Joint f;
  const std::string left = f.directory.TemporaryPath(12, SaveToken(kRun, 1));
  std::filesystem::create_directory(left);
  testing::WriteShard(left, {}, 0);
  CHECK(f.Save(1, 12).error == "");
  CHECK(f.There() == Names{"step-000000012"});
}

TEST_CASE("joint save: the part of a ps that does not see the directory is pulled, and is the same") {
  Joint f;
  f.pulled = true;
  f.cut = f.ps1.shard.TakeCut();
  f.BeginAndWait(1, 12);
  CHECK_FALSE(f.save.Wants(1));
  f.Tell(1, true, {1, 2});  // it was not told to write
  const JointSave::Outcome outcome = *PollUntil([&] {
    f.Answer();
    return f.save.Poll();
  });
  CHECK(outcome.error == "");
  Joint other;
  REQUIRE(other.Save(1, 12).error == "");
  for (const std::string& name : {ShardName(0, 2), ShardName(1, 2)}) {
    CHECK(testing::FileContent(outcome.path + "/" + name) ==
          testing::FileContent(other.PathOf("step-000000012") + "/" + name));
  }
}

TEST_CASE("joint save: checkpoint.keep newest stay, and the best one, which is named") {
  Joint f;
  f.begun = SavedMoment{kRun.id, kRun.epoch, 1, "{}", /*best=*/true, 0.25, 0.5};
  f.save.Begin(1, f.begun, f.ps0.shard.TakeCut(), {false, false});
  PollUntil([&] {
    f.save.Poll();
    return f.save.writing();
  });
  f.Tell(1, true, f.WritePart1(1));
  CHECK(f.End().error == "");
  CHECK(f.directory.ReadBest() == "step-000000001");
  CHECK(f.directory.ReadBestLoss() == 0.25);
  CHECK(f.Save(2, 2).error == "");
  CHECK(f.Save(3, 3).error == "");
  CHECK(f.There() == Names{"best", "step-000000001", "step-000000003"});
}

}  // namespace
}  // namespace dtrain
