// `dtrain inspect` as a process.
#include <doctest/doctest.h>

#include <fmt/core.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"
#include "trainer/checkpoint/checkpoint_test_util.h"

namespace dtrain::testing {
namespace {

// Steps 1, 2 and 3.
std::string ThreeCheckpoints() {
  CheckpointDirectory directory(NewDirectory());
  SmallCheckpoint of;
  for (of.step = 1; of.step <= 3; ++of.step) SaveSmall(&directory, of);
  directory.WriteBest("step-000000002");
  return directory.path();
}

std::string Saved() { return WallText(1767225600000000000); }

void Flip(const std::string& path, size_t at) {
  std::string bytes = FileContent(path);
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST_CASE("inspect: a directory is listed, the newest first, and that one is shown in full") {
  const std::string root = ThreeCheckpoints();
  Process inspect({"inspect", root + "/"});
  CHECK(RunToEnd(inspect) == 0);
  const std::string expected = fmt::format(
      R"({0}: 3 checkpoints
sequence          step  saved                             bytes              name
       3             3  {1}             722       722 B  step-000000003: good
       2             2  {1}             722       722 B  step-000000002: good, the best
       1             1  {1}             722       722 B  step-000000001: good
{0}/step-000000003: good
)",
      root, Saved());
  const std::string said = inspect.standard_output();
  CHECK(said.substr(0, expected.size()) == expected);
  CHECK(inspect.standard_error() == "");
}

TEST_CASE("inspect: one checkpoint is shown with what is known of the run, its files and its values") {
  CheckpointDirectory directory(NewDirectory());
  SmallCheckpoint of;
  of.slots = {"velocity"};
  of.layout = SmallLayout(1);
  const std::string temporary = directory.BeginSave(7);
  ShardWriter writer(temporary + "/shard-0-of-1");
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -15};
  const std::vector<float> biases = {0.5f, 0.5f, 0.5f}, velocity(15, 0.0f);
  const std::vector<float> broken = {NAN, 1, -INFINITY};
  std::vector<uint64_t> checksums;
  for (const auto* values : {&weights, &biases, &velocity, &broken}) {
    checksums.push_back(writer.Add(values->data(), values->size() * sizeof(float)));
  }
  writer.Finish();
  Manifest manifest = ManifestOf(of, {checksums});
  manifest.step = 7;
  manifest.optimizer = "momentum";
  directory.Seal(temporary, manifest, "a: b\n");
  const std::string path = directory.Publish(temporary);
  Process inspect({"inspect", path});
  CHECK(RunToEnd(inspect) == 0);
  const std::string expected = fmt::format(
      R"({0}: good
  step 7, sequence 1, saved {1}
  by dtrain 0.1.0, run 1122334455667788, mode sync, optimizer momentum (velocity)
  loss 0.25, accuracy not measured
  config: {0}/config.yaml
  positions: {{"workers":[]}}
         bytes               pieces  file
           320       320 B        4  shard-0-of-1
             5         5 B           config.yaml
  tensor                         shape                        min          max         mean       stddev         norm  not finite
  weights/W1                     5 x 3  weights               -15           14            6        6.831        35.21           0
                                        velocity                0            0            0            0            0           0
  biases/b1                      3 x 1  weights               0.5          0.5          0.5            0        0.866           0
                                        velocity                1            1            1            0            1           2
)",
      path, Saved());
  CHECK(inspect.standard_output() == expected);
}

TEST_CASE(
    "inspect: a damaged one in a directory is told, the newest good one shown, and the exit code is 2") {
  const std::string root = ThreeCheckpoints();
  Flip(root + "/step-000000003/shard-1-of-2", 70);
  std::filesystem::remove(root + "/step-000000001/manifest");
  Process inspect({"inspect", root});
  CHECK(RunToEnd(inspect) == 2);
  const std::string said = inspect.standard_output();
  CAPTURE(said);
  CHECK(Contains(said, "  step-000000003: shard-1-of-2 is damaged at byte 64: the checksum of the 64 bytes"));
  CHECK(Contains(said, "\nstep-000000001: manifest is missing\n"));
  CHECK(Contains(said, root + "/step-000000002: good\n"));
  CHECK(inspect.standard_error() ==
        fmt::format(
            "dtrain: {}: 2 of 3 checkpoints cannot be restored (see above). Remove what is of no use; a "
            "run takes the newest good one.\n",
            root));
}

TEST_CASE(
    "inspect: a damaged one by name is exit code 2 and what is wrong, and so is one that is not there") {
  const std::string root = ThreeCheckpoints();
  const std::string path = root + "/step-000000003";
  Flip(path + "/config.yaml", 3);
  Process damaged({"inspect", path});
  CHECK(RunToEnd(damaged) == 2);
  CHECK(damaged.standard_output() == "");
  CHECK(Contains(damaged.standard_error(),
                 "dtrain: " + path + ": config.yaml is damaged: the checksum of its 18 bytes is "));
  Process missing({"inspect", root + "/step-000000009"});
  CHECK(RunToEnd(missing) == 2);
  CHECK(Contains(missing.standard_error(), "step-000000009: there is no such directory. "));
}

TEST_CASE("inspect: a directory in which a run saves and prunes meanwhile is good") {
  CheckpointDirectory directory(NewDirectory());
  SmallCheckpoint of;
  for (of.step = 0; of.step < 100; ++of.step) SaveSmall(&directory, of);
  std::atomic<bool> over{false};
  std::thread run([&] {
    for (; !over; ++of.step) {
      SaveSmall(&directory, of);
      directory.Prune(100);
    }
  });
  for (int i = 0; i < 20; ++i) {
    Process inspect({"inspect", directory.path()});
    CHECK(RunToEnd(inspect) == 0);
    CHECK(inspect.standard_error() == "");
    CHECK(Contains(inspect.standard_output(), "\n  weights/W1 "));
  }
  over = true;
  run.join();
}

}  // namespace
}  // namespace dtrain::testing
