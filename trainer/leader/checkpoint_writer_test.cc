#include "trainer/leader/checkpoint_writer.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/file_limit.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/ps/ps_task_test_util.h"
#include "trainer/shard/shared_directory.h"

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

// Changes one bit of the file.
void Flip(const std::string& file, size_t at) {
  std::string bytes = testing::FileContent(file);
  bytes.at(at) ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
}

// A FakeLeader with a CheckpointWriter.
class WritingLeader : public FakeLeader {
 public:
  explicit WritingLeader(CheckpointWriter& writer) : writer_(writer) {}
  void OnSnapshot(int, uint64_t, const ShardSaver::Outcome* part) override {
    if (part != nullptr) writer_.OnPart(0, "", *part);
  }

 private:
  CheckpointWriter& writer_;
};

// ps 0 with its CheckpointWriter, and what a ps 1 writes and reports.
struct Saving {
  Saving() { ps0.Lead(std::make_unique<WritingLeader>(writer)); }
  void Begin(uint64_t number, const SavedMoment& moment) {
    begun = moment;
    ps0.keeper.Take(number, 0);
    writer.Begin(number, begun, {false, false});
  }
  void Begin(uint64_t number, int64_t step) { Begin(number, SavedMoment{kRun.id, kRun.epoch, step, "{}"}); }
  void WaitUntilBegun() {
    PollUntil([&] {
      CHECK_FALSE(writer.Poll());
      return writer.writing();
    });
  }
  void BeginAndWait(uint64_t number, int64_t step) {
    Begin(number, step);
    WaitUntilBegun();
  }
  std::optional<CheckpointWriter::Outcome> Poll() {
    ps0.keeper.Tick();
    return writer.Poll();
  }
  std::string Temporary(uint64_t number) const {
    return directory.TemporaryPath(begun.step, SaveToken(kRun, number));
  }
  Checksums WritePart1(uint64_t number) {
    ShardSaver saver(ps1.layout, 1, kSlots);
    saver.Begin(number, ps1.shard.TakeSnapshot(), Temporary(number));
    PollUntil([&] { return saver.Poll(); });
    REQUIRE(saver.Of(number)->error == "");
    return saver.Of(number)->part.checksums;
  }
  // ps 1 reports its part.
  void Tell(const Checksums& checksums, const std::string& error = "") {
    writer.OnPart(1, "ps 1 on there", {checksums, error});
  }
  CheckpointWriter::Outcome End() {
    return *PollUntil([&] { return Poll(); });
  }
  CheckpointWriter::Outcome Save(uint64_t number, int64_t step) {
    BeginAndWait(number, step);
    Tell(WritePart1(number));
    return End();
  }
  Names There() const { return NamesIn(config.checkpoint.dir); }
  std::string PathOf(const std::string& name) const { return directory.PathOf(name); }

  const Config config = Adam();
  PsTaskFixture ps0{config, 0};
  PsFixture ps1{config, 1};
  CheckpointDirectory directory{config.checkpoint.dir};
  CheckpointWriter writer{
      ps0.config, ps0.layout, directory, "ps 0 on here", ps0.keeper, [](size_t, uint64_t, Piece) {}, ps0.log};
  SavedMoment begun;
};

TEST_CASE(
    "checkpoint writer: with all parts there the checkpoint has its name, and all values of the moment") {
  Saving f;
  std::vector<float> expected(static_cast<size_t>(f.ps0.layout.size));
  for (const Range& range : f.ps0.layout.ps) {
    InitialValues(f.config.model, f.ps0.layout, range, expected.data() + range.begin);
  }
  f.BeginAndWait(1, 12);
  f.ps0.Update();
  const Checksums checksums = f.WritePart1(1);
  CHECK(f.writer.Wants(1));
  f.Tell(checksums);
  CHECK_FALSE(f.writer.Wants(1));
  const CheckpointWriter::Outcome outcome = f.End();
  CHECK(outcome.error == "");
  CHECK(outcome.path == f.PathOf("step-000000012"));
  CHECK_FALSE(f.Poll());
  CHECK_FALSE(f.writer.writing());
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

TEST_CASE("checkpoint writer: nothing is published before every ps has said that its part is on the disk") {
  Saving f;
  f.Begin(1, 12);
  f.Tell({});  // ignored: nobody was told to write yet
  CHECK(f.writer.Wants(1));
  PollUntil([&] {
    f.Poll();
    return !f.writer.Wants(0);
  });
  const Checksums checksums = f.WritePart1(1);
  CHECK(f.writer.Wants(1));
  CHECK_FALSE(f.Poll());
  CHECK(f.writer.writing());
  f.Tell(checksums);
  CHECK_FALSE(f.writer.writing());
  f.Tell({});  // ignored: its part is here
  CHECK(f.End().error == "");
  CheckpointReader(f.PathOf("step-000000012")).Verify();
  f.Tell(checksums);
  CHECK_FALSE(f.Poll());
  f.Begin(2, 13);
  CHECK(f.writer.Wants(0));
  CHECK(f.writer.Wants(1));
}

TEST_CASE(
    "checkpoint writer: a part without one of its checksums is no part, and nothing of the save stays") {
  Saving f;
  for (uint64_t number = 1; number <= 2; ++number) {
    f.BeginAndWait(number, 12);
    Checksums checksums = f.WritePart1(number);
    number == 1 ? checksums.pop_back() : checksums.push_back(1);
    f.Tell(checksums);
    const CheckpointWriter::Outcome outcome = f.End();
    CHECK(outcome.path == "");
    CHECK(Contains(outcome.error, "ps 0 on here: "));
    CHECK(f.There().empty());
  }
  CHECK(f.Save(3, 12).error == "");
}

TEST_CASE("checkpoint writer: a part counts when ps 0 has read it, not when a ps says that it is written") {
  struct Case {
    const char* what;
    std::function<void(const std::string& file)> harm;
    const char* said;
  };
  const std::vector<Case> cases = {
      {"gone", [](const std::string& file) { std::filesystem::remove(file); }, "is missing"},
      {"short", [](const std::string& file) { std::filesystem::resize_file(file, 100); }, "has 100 bytes"},
      {"of other bytes", [](const std::string& file) { Flip(file, 64); }, "is damaged at byte 64"},
      {"without its header", [](const std::string& file) { Flip(file, 0); }, "does not begin with"},
      {"a directory",
       [](const std::string& file) {
         std::filesystem::remove(file);
         std::filesystem::create_directory(file);
       },
       "is no file"},
      {"a link",
       [](const std::string& file) {
         std::filesystem::rename(file, file + "-elsewhere");
         std::filesystem::create_symlink(file + "-elsewhere", file);
       },
       "is a link, not a file"},
  };
  Saving f;
  CHECK(f.Save(1, 1).error == "");
  uint64_t number = 1;
  for (const Case& each : cases) {
    CAPTURE(each.what);
    f.BeginAndWait(++number, 12);
    const Checksums checksums = f.WritePart1(number);
    each.harm(f.Temporary(number) + "/shard-1-of-2");
    f.Tell(checksums);
    const CheckpointWriter::Outcome outcome = f.End();
    CHECK(outcome.path == "");
    CHECK(Contains(outcome.error,
                   "ps 1 on there says that its part is written, but in " + f.Temporary(number)));
    CHECK(Contains(outcome.error, std::string("shard-1-of-2 ") + each.said));
    CHECK(f.There() == Names{"step-000000001"});
  }
  f.BeginAndWait(++number, 12);
  Checksums checksums = f.WritePart1(number);
  ++checksums[0];
  f.Tell(checksums);
  CHECK(Contains(f.End().error, "shard-1-of-2 is damaged at byte 64"));
  CHECK(f.Save(++number, 13).path == f.PathOf("step-000000013"));
}

TEST_CASE("checkpoint writer: a ps that cannot write gives up the save by its name; the next one is made") {
  Saving f;
  CHECK(f.Save(1, 1).error == "");
  f.BeginAndWait(2, 12);
  f.Tell({}, "no room");
  const CheckpointWriter::Outcome outcome = f.End();
  CHECK(outcome.path == "");
  CHECK(outcome.error == "ps 1 on there: no room");
  CHECK(f.There() == Names{"step-000000001"});
  CHECK(f.Save(3, 13).path == f.PathOf("step-000000013"));
}

TEST_CASE(
    "checkpoint writer: a save that is given up while a slow disk makes its directory is not completed") {
  Saving f;
  f.Begin(1, 12);
  f.writer.GiveUp("too late");
  CHECK(f.End().error == "too late");
  CHECK(f.There().empty());
  CHECK(f.Save(2, 13).error == "");
}

TEST_CASE(
    "checkpoint writer: a save that is given up is never published, and one that is published says so") {
  Saving f;
  for (uint64_t number = 1; number <= 20; ++number) {
    const auto step = static_cast<int64_t>(number);
    f.BeginAndWait(number, step);
    f.Tell(f.WritePart1(number));
    PollUntil([&] {
      if (f.writer.writing()) f.ps0.keeper.Tick();
      return !f.writer.writing();
    });
    const TimePoint later = Clock::now() + std::chrono::microseconds(100 * number);
    while (Clock::now() < later) std::this_thread::yield();
    const bool given_up = f.writer.GiveUp("too late");
    const CheckpointWriter::Outcome outcome = f.End();
    CHECK(outcome.path == (given_up ? "" : f.PathOf(CheckpointName(step))));
    CHECK(outcome.error == (given_up ? "the checkpoint was given up" : ""));
    CHECK(std::filesystem::exists(f.PathOf(CheckpointName(step))) == !given_up);
  }
}

TEST_CASE("checkpoint writer: ps 0 that cannot write its own part, or make the directory, is named too") {
  Saving f;
  {
    const FileLimit full(100);
    f.Begin(1, 12);
    const CheckpointWriter::Outcome outcome = f.End();
    CHECK(Contains(outcome.error, "ps 0 on here: "));
    CHECK(Contains(outcome.error, "shard-0-of-2"));
    CHECK(Contains(outcome.error, "File too large"));
  }
  CHECK(f.There().empty());
  std::filesystem::remove_all(f.config.checkpoint.dir);
  std::ofstream(f.config.checkpoint.dir) << "a file";
  f.Begin(2, 13);
  const CheckpointWriter::Outcome outcome = f.End();
  CHECK(Contains(outcome.error, "ps 0 on here: " + f.config.checkpoint.dir));
  CHECK(Contains(outcome.error, "Not a directory"));
}

TEST_CASE("checkpoint writer: checkpoint.keep newest stay, and the best one, which is named") {
  Saving f;
  f.Begin(1, SavedMoment{kRun.id, kRun.epoch, 1, "{}", /*best=*/true, 0.25, 0.5});
  f.WaitUntilBegun();
  f.Tell(f.WritePart1(1));
  CHECK(f.End().error == "");
  CHECK(f.directory.ReadBest() == "step-000000001");
  CHECK(f.directory.ReadBestScore(EvalMetric::kLoss) == 0.25);
  CHECK(f.Save(2, 2).error == "");
  CHECK(f.Save(3, 3).error == "");
  CHECK(f.There() == Names{"best", "step-000000001", "step-000000003"});
}

}  // namespace
}  // namespace dtrain
