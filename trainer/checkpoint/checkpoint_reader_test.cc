#include "trainer/checkpoint/checkpoint_reader.h"

#include <doctest/doctest.h>

#include <fstream>

#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"

namespace dtrain::testing {
namespace {

// One slot of a ps's range, read as in a restore.
std::vector<float> ReadRange(CheckpointReader* reader, const Layout& layout, int ps,
                             const std::string& slot) {
  const Range range = layout.ps[static_cast<size_t>(ps)];
  std::vector<float> values(static_cast<size_t>(range.size()));
  for (const Segment& segment : layout.SegmentsOf(ps)) {
    const Variable& variable = layout.variables[static_cast<size_t>(segment.variable)];
    reader->Read(variable.name, slot, segment.first_row * variable.cols, segment.rows * variable.cols,
                 values.data() + (segment.offset - range.begin));
  }
  return values;
}

TEST_CASE("reader: what 2 ps wrote, 1, 3 and 5 read with the same bits, weights and slots") {
  CheckpointDirectory directory(NewDirectory());
  SmallCheckpoint written;
  written.layout = SmallLayout(2, 400000);  // 1.2 million weights: several blocks each
  CheckpointReader reader(SaveSmall(&directory, written));
  reader.CheckFits(written.layout, written.slots);
  reader.Verify();
  for (const int ps_count : {1, 3, 5}) {
    for (const PlacementPolicy policy : {PlacementPolicy::kBytes, PlacementPolicy::kRoundRobin}) {
      const Layout layout = SmallLayout(ps_count, 400000, policy);
      int64_t wrong = 0;
      for (int slot = 0; slot < 3; ++slot) {
        for (int ps = 0; ps < ps_count; ++ps) {
          const std::string name =
              slot == 0 ? CheckpointReader::kWeights : written.slots[static_cast<size_t>(slot) - 1];
          const std::vector<float> values = ReadRange(&reader, layout, ps, name);
          for (const TensorPiece& piece : PiecesOf(layout, ps, 0)) {
            const std::string& variable = layout.variables[static_cast<size_t>(piece.variable)].name;
            for (int64_t i = 0; i < piece.count; ++i) {
              wrong +=
                  values[static_cast<size_t>(piece.begin + i)] != ValueOf(1, variable, slot, piece.first + i);
            }
          }
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("reader: a shard file that does not begin as one is refused before anything is read of it") {
  CheckpointDirectory directory(NewDirectory());
  const std::string path = SaveSmall(&directory, {});
  std::fstream(path + "/shard-0-of-2", std::ios::in | std::ios::out).seekp(10) << "XXXX";
  CHECK_THROWS_WITH_AS(CheckpointReader{path}, doctest::Contains("does not begin with the 64 bytes"),
                       BadCheckpoint);
}

TEST_CASE("reader: any elements can be read, across pieces and within one") {
  CheckpointDirectory directory(NewDirectory());
  CheckpointReader reader(SaveSmall(&directory, {}));
  for (int64_t first = 0; first < 15; ++first) {
    for (int64_t count = 0; first + count <= 15; ++count) {
      std::vector<float> values(static_cast<size_t>(count) + 1, 9);
      reader.Read("weights/W1", "v", first, count, values.data());
      for (int64_t i = 0; i < count; ++i) {
        CHECK(values[static_cast<size_t>(i)] == ValueOf(1, "weights/W1", 2, first + i));
      }
      CHECK(values.back() == 9);
    }
  }
}

TEST_CASE("reader: a checkpoint that was removed after it was opened is read to its end") {
  CheckpointDirectory directory(NewDirectory());
  CheckpointReader reader(SaveSmall(&directory, {}));
  std::filesystem::remove_all(reader.path());
  std::vector<float> values(15);
  reader.Read("weights/W1", "m", 0, 15, values.data());
  CHECK(values[14] == ValueOf(1, "weights/W1", 1, 14));
}

TEST_CASE("reader: the config comes back as it was written") {
  CheckpointDirectory directory(NewDirectory());
  CHECK(CheckpointReader(SaveSmall(&directory, {})).Config() == "train: {steps: 1}\n");
}

std::string WhyNot(const CheckpointReader& reader, const Layout& layout,
                   const std::vector<std::string>& slots) {
  try {
    reader.CheckFits(layout, slots);
  } catch (const UserError& error) {
    return error.what();
  }
  return "it fits";
}

TEST_CASE(
    "reader: another model is refused by its first tensor in the order of names, another optimizer by name") {
  CheckpointDirectory directory(NewDirectory());
  const SmallCheckpoint of;
  const CheckpointReader reader(SaveSmall(&directory, of));
  const std::string remedy = " Use the file that it was written with (" + reader.path() +
                             "/config.yaml), or another checkpoint.dir.";
  CHECK(WhyNot(reader, SmallLayout(7), of.slots) == "it fits");
  Layout wider = SmallLayout(2, 6);
  CHECK(WhyNot(reader, wider, of.slots) ==
        reader.path() + ": another model: weights/W1 is 5 x 3 in the checkpoint and 6 x 3 in this run." +
            remedy);
  wider.variables[1].rows = 4;
  CHECK(WhyNot(reader, wider, of.slots) ==
        reader.path() + ": another model: biases/b1 is 3 x 1 in the checkpoint and 4 x 1 in this run." +
            remedy);
  Layout more = of.layout;
  more.variables.push_back(more.variables[0]);
  more.variables.back().name = "weights/W2";
  CHECK(WhyNot(reader, more, of.slots)
            .find("weights/W2 is no such tensor in the checkpoint and 5 x 3 in this run.") !=
        std::string::npos);
  more.variables.erase(more.variables.begin(), more.variables.begin() + 2);
  CHECK(WhyNot(reader, more, of.slots)
            .find("biases/b1 is 3 x 1 in the checkpoint and no such tensor in this run.") !=
        std::string::npos);
  CHECK(WhyNot(reader, of.layout, {"velocity"}) ==
        reader.path() +
            ": another optimizer: the checkpoint is of adam (m, v), and train.optimizer of this run has "
            "velocity." +
            remedy);
  CHECK(WhyNot(reader, of.layout, {}).find("this run has no slots.") != std::string::npos);
}

TEST_CASE("reader: for a run that begins with it, slots of another optimizer have their first values") {
  CheckpointDirectory directory(NewDirectory());
  const SmallCheckpoint of;
  dtrain::Config config;
  config.train.optimizer.kind = OptimizerKind::kAdam;
  const std::string path = SaveSmall(&directory, of);
  CheckpointReader same(path);
  same.BeginWith(config, of.layout);
  CHECK_FALSE(same.slots_begin_anew());
  CHECK(same.slot_updates() == of.step);
  config.train.optimizer.kind = OptimizerKind::kAdagrad;
  config.train.optimizer.initial_accumulator = 0.5;
  CheckpointReader other(path);
  other.BeginWith(config, of.layout);
  CHECK(other.slots_begin_anew());
  CHECK(other.slot_updates() == 0);
  std::vector<float> values(2);
  other.Read("weights/W1", "accumulator", 1, 2, values.data());
  CHECK(values == std::vector<float>{0.5, 0.5});
  other.Read("weights/W1", "", 1, 2, values.data());
  CHECK(values[0] == ValueOf(of.salt, "weights/W1", 0, 1));
  CHECK_THROWS_WITH_AS(CheckpointReader(path).BeginWith(config, SmallLayout(2, 6)),
                       doctest::Contains("or another checkpoint."), UserError);
}

TEST_CASE("reader: a directory that is none, and a pipe in the place of a file, are told") {
  const std::string root = NewDirectory();
  CHECK_THROWS_WITH_AS(CheckpointReader(root + "/nowhere"), doctest::Contains("there is no such directory."),
                       BadCheckpoint);
  try {
    CheckpointReader reader(root);
  } catch (const BadCheckpoint& bad) {
    CHECK(bad.problem() == "manifest is missing");
    CHECK(bad.code() == ExitCode::kUser);
  }
  REQUIRE(mkfifo((root + "/manifest").c_str(), 0600) == 0);
  CHECK_THROWS_AS(CheckpointReader{root}, BadCheckpoint);
}

}  // namespace
}  // namespace dtrain::testing
