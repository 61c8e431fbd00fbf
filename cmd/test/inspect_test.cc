// `dtrain inspect` as a process.
#include <doctest/doctest.h>

#include <fmt/core.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/testing/files.h"
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
  const Done inspect = Run({"inspect", root + "/"});
  CHECK(inspect.code == 0);
  const std::string expected = fmt::format(
      R"({0}: 3 checkpoints
sequence          step  saved                                   bytes              name
       3             3  {1}             722       722 B  step-000000003: good
       2             2  {1}             722       722 B  step-000000002: good, the best
       1             1  {1}             722       722 B  step-000000001: good
{0}/step-000000003: good
)",
      root, Saved());
  CHECK(inspect.output.substr(0, expected.size()) == expected);
  CHECK(inspect.error == "");
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
  const Done inspect = Run({"inspect", path});
  CHECK(inspect.code == 0);
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
  CHECK(inspect.output == expected);
}

TEST_CASE("inspect: a model without hidden layers has its weights by the names of features and classes") {
  CheckpointDirectory directory(NewDirectory());
  SmallCheckpoint of;
  of.slots.clear();
  of.layout = SmallLayout(1);
  const std::string temporary = directory.BeginSave(7);
  ShardWriter writer(temporary + "/shard-0-of-1");
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -15};
  const std::vector<float> biases = {0.5f, 0.25f, 0.125f};
  std::vector<uint64_t> checksums;
  for (const auto* values : {&weights, &biases}) {
    checksums.push_back(writer.Add(values->data(), values->size() * sizeof(float)));
  }
  writer.Finish();
  Manifest manifest = ManifestOf(of, {checksums});
  manifest.step = 7;
  manifest.inputs.emplace();
  manifest.inputs->features = {"height", "width", "age", "tab\there", "last"};
  manifest.inputs->classes = {"alba", "rubra"};
  directory.Seal(temporary, manifest, "a: b\n");
  const Done inspect = Run({"inspect", directory.Publish(temporary)});
  CHECK(inspect.code == 0);
  CHECK(Contains(inspect.output,
                 "  feature                           alba         rubra             2\n"
                 "  height                               1             2             3\n"
                 "  width                                4             5             6\n"
                 "  age                                  7             8             9\n"
                 "  tab here                            10            11            12\n"
                 "  last                                13            14           -15\n"
                 "  (bias)                             0.5          0.25         0.125\n"));
}

TEST_CASE(
    "inspect: what is damaged, or not there, is told and exit code 2; of a directory the good ones too") {
  const std::string root = ThreeCheckpoints();
  const std::string path = root + "/step-000000003";
  Flip(path + "/shard-1-of-2", 70);
  std::filesystem::remove(root + "/step-000000001/manifest");
  const Done all = Run({"inspect", root});
  CAPTURE(all.output);
  CHECK(all.code == 2);
  CHECK(Contains(all.output,
                 "  step-000000003: shard-1-of-2 is damaged at byte 64: the checksum of the 64 bytes"));
  CHECK(Contains(all.output, "\nstep-000000001: manifest is missing\n"));
  CHECK(Contains(all.output, root + "/step-000000002: good\n"));
  CHECK(all.error ==
        fmt::format(
            "dtrain: {}: 2 of 3 checkpoints cannot be restored (see above). Remove what is of no use; a "
            "run takes the newest good one.\n",
            root));
  Flip(path + "/config.yaml", 3);
  const Done damaged = Run({"inspect", path});
  CHECK(damaged.code == 2);
  CHECK(damaged.output == "");
  CHECK(Contains(damaged.error,
                 "dtrain: " + path + ": config.yaml is damaged: the checksum of its 18 bytes is "));
  const Done missing = Run({"inspect", root + "/step-000000009"});
  CHECK(missing.code == 2);
  CHECK(Contains(missing.error, "step-000000009: there is no such directory. "));
  CHECK(Contains(Run({"inspect", root + "/nosuch"}).error,
                 "/nosuch: does not exist. Name the directory of a run, such as runs/NAME, or a checkpoint"));
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
    const Done inspect = Run({"inspect", directory.path()});
    CHECK(inspect.code == 0);
    CHECK(inspect.error == "");
    CHECK(Contains(inspect.output, "\n  weights/W1 "));
  }
  over = true;
  run.join();
}

TEST_CASE(
    "inspect: a checkpoint of TensorFlow is listed with slices, slots and its step, and damage is exit 2") {
  const std::string directory = NewDirectory();
  std::filesystem::copy("testdata/tensorflow/run", directory + "/run");
  const Done done = Run({"inspect", directory + "/run"});
  CAPTURE(done.error);
  CHECK(done.code == 0);
  CHECK(Contains(done.output,
                 fmt::format("{0}/run/model.ckpt-1: a checkpoint of TensorFlow, V2, 3 tensors in 2 files; "
                             "{0}/run/checkpoint names it\n",
                             directory)));
  CHECK(Contains(done.output, "  emb          [7, 4]  float32       3\n"));
  CHECK(Contains(done.output, "  emb/Adagrad  [7, 4]  float32       3  slot Adagrad of emb\n"));
  CHECK(Contains(done.output, "  global_step  []      int64            the step: 1\n"));
  const std::string data = directory + "/run/model.ckpt-1.data-00001-of-00002";
  std::string bytes = FileContent(data);
  bytes[5] ^= 1;
  WriteFile(data, bytes);
  const Done damaged = Run({"inspect", "--json", directory + "/run/model.ckpt-1.index"});
  CHECK(damaged.code == 2);
  const Json document = Json::Parse(damaged.output);
  CHECK(document["format"] == "TensorFlow V2");
  int64_t bad = 0;
  for (const Json& tensor : document["tensors"]) bad += tensor["state"] == "good" ? 0 : 1;
  CHECK(bad == 1);
  CHECK(Contains(damaged.error, "/run/model.ckpt-1: 1 of 3 tensors cannot be read (see above)."));
  CHECK(Run({"inspect", "testdata/tensorflow/old"}).code == 0);
  const Done list = Run({"inspect", "testdata/tensorflow/estimator/keras2_adam"});
  CHECK(list.code == 0);
  CHECK(Contains(list.output,
                 "  optimizer/_variables/1/.ATTRIBUTES/VARIABLE_VALUE             [3, 2]  float32          "
                 "slot momentum of Adam of model/layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE\n"));
  const Done weights = Run({"inspect", "testdata/tensorflow/old", "--weights", "3"});
  CHECK(weights.code == 2);
  CHECK(Contains(weights.error, "--weights: testdata/tensorflow/old is of TensorFlow"));
  // A directory of checkpoints of dtrain is one, whatever else lies there.
  const std::string own = directory + "/own";
  std::filesystem::copy("testdata/checkpoints/sync_linear/ckpt", own,
                        std::filesystem::copy_options::recursive);
  WriteFile(own + "/notes.index", "notes");
  WriteFile(own + "/checkpoint", "model_checkpoint_path: \"x\"");
  CHECK(Contains(Run({"inspect", own}).output, own + ": 1 checkpoint\n"));
  CHECK(Contains(Run({"inspect", "configs/data/flowers.csv"}).error,
                 "a file, and no checkpoint of dtrain or TensorFlow."));
}

}  // namespace
}  // namespace dtrain::testing
