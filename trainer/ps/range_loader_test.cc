#include "trainer/ps/range_loader.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/optim/optimizer.h"
#include "trainer/ps/ps_test_util.h"

namespace dtrain {
namespace {

using testing::SmallCheckpoint;

constexpr int64_t kStep = 12000;
const std::string kName = "step-000012000";

Config Adam(int ps, int64_t inputs) {
  Config config = LinearCluster(ps, 1, 100);
  config.model.inputs = inputs;
  config.train.optimizer.kind = OptimizerKind::kAdam;
  return config;
}

// checkpoint.dir with what 2 ps wrote of the model of `config`.
std::string Saved(const Config& config) {
  const std::string root = testing::NewDirectory();
  CheckpointDirectory directory(root);
  SmallCheckpoint of;
  of.layout = PlaceVariables(ModelVariables(config.model), 2, PlacementConfig());
  of.slots = SlotNames(config);
  of.step = kStep;
  SaveSmall(&directory, of);
  return root;
}

struct Loading : PsFixture {
  Loading(Config of, int ps, const std::string& dir)
      : PsFixture((of.checkpoint.dir = dir, of), ps),
        empty(config, layout, ps),
        loader(config, layout, ps, empty),
        index(ps) {}

  RangeLoader::Outcome Load(const std::string& name, uint64_t request = 1) {
    loader.Begin({2, request}, name);
    while (loader.busy()) {
      const bool ended = loader.Turn();
      CHECK(ended == !loader.busy());
    }
    return *loader.outcome();
  }
  // How many of the range's values, slots included, are not those that were saved.
  int Wrong() {
    int wrong = 0;
    const auto values = ValuesOf(*empty.TakeCut(), empty.slot_names().size());
    const SmallCheckpoint of;
    for (const Piece& piece : PiecesOf(layout, index, static_cast<int>(values.size()) - 1)) {
      const std::string& variable = layout.variables[static_cast<size_t>(piece.variable)].name;
      const std::vector<float>& slot = values[static_cast<size_t>(piece.slot)];
      for (int64_t i = 0; i < piece.count; ++i) {
        const float expected = testing::ValueOf(of.salt, variable, piece.slot, piece.first + i);
        wrong += slot[static_cast<size_t>(piece.begin + i)] != expected;
      }
    }
    return wrong;
  }

  HostShard empty;  // what is loaded into
  RangeLoader loader;
  int index;
};

TEST_CASE("range loader: what 2 ps wrote any number of ps loads, weights and slots") {
  for (const int64_t inputs : {4, 600000}) {
    const std::string dir = Saved(Adam(1, inputs));
    for (const int count : {1, 2, 3, 7}) {
      for (int ps = 0; ps < count; ++ps) {
        CAPTURE(count);
        CAPTURE(ps);
        Loading f(Adam(count, inputs), ps, dir);
        const RangeLoader::Outcome outcome = f.Load(kName);
        CHECK(outcome.error == "");
        CHECK_FALSE(outcome.misfit);
        CHECK(outcome.step == kStep);
        CHECK(outcome.positions == "{\"workers\":[]}");
        CHECK_FALSE(f.empty.initialised());
        f.empty.SetRestored(1);
        CHECK(f.Wrong() == 0);
      }
    }
  }
}

void Flip(const std::string& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const auto byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(at);
  file.put(byte);
}

// The first error of 3 ps that load their ranges; empty: none has one.
std::string ErrorOfThree(const Config& config, const std::string& dir, bool* misfit) {
  std::string error;
  for (int ps = 0; ps < 3; ++ps) {
    const RangeLoader::Outcome outcome = Loading(config, ps, dir).Load(kName);
    if (error.empty()) error = outcome.error;
    *misfit |= outcome.misfit;
  }
  return error;
}

TEST_CASE("range loader: whichever byte is damaged, one of all ps finds it and names the file") {
  const Config config = Adam(3, 8);
  const std::string dir = Saved(config);
  for (const std::string& name : testing::NamesIn(dir + "/" + kName)) {
    const std::string path = dir + "/" + kName + "/" + name;
    const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
    for (int64_t at = 0; at < size; ++at) {
      CAPTURE(name);
      CAPTURE(at);
      Flip(path, at);
      bool misfit = false;
      CHECK(ErrorOfThree(config, dir, &misfit).find(name) != std::string::npos);
      CHECK_FALSE(misfit);
      Flip(path, at);
    }
  }
}

TEST_CASE(
    "range loader: of a damaged one nothing counts, and the range begins with initial values or another "
    "one") {
  const Config config = Adam(1, 600000);
  const std::string dir = Saved(config);
  Flip(dir + "/" + kName + "/shard-1-of-2", 1000);  // behind what is read first
  Loading f(config, 0, dir);
  const RangeLoader::Outcome outcome = f.Load(kName);
  CHECK(outcome.error.find("shard-1-of-2 is damaged at byte ") == 0);
  CHECK_FALSE(outcome.misfit);
  CHECK_FALSE(f.empty.initialised());
  f.empty.Initialise();
  CHECK(f.empty.version(0) == 0);
  CHECK(f.empty.Report().parts[0].sum.crc == f.shard.Report().parts[0].sum.crc);

  Loading other(config, 0, dir);
  other.Load(kName);
  Flip(dir + "/" + kName + "/shard-1-of-2", 1000);
  CHECK(other.Load(kName, 2).error == "");
  other.empty.SetRestored(1);
  CHECK(other.Wrong() == 0);
}

TEST_CASE(
    "range loader: another model is a misfit that names its first tensor, another optimizer its slots") {
  const std::string dir = Saved(Adam(2, 4));
  const RangeLoader::Outcome model = Loading(Adam(2, 5), 0, dir).Load(kName);
  CHECK(model.misfit);
  CHECK(model.error.find("another model: weights/W1 is 4 x 1 in the checkpoint and 5 x 1 in this run") !=
        std::string::npos);
  Config wider = Adam(2, 5);
  wider.model.outputs = 2;
  const RangeLoader::Outcome both = Loading(wider, 0, dir).Load(kName);
  CHECK(both.misfit);
  CHECK(both.error.find("another model: biases/b1 is 1 x 1 in the checkpoint and 2 x 1 in this run") !=
        std::string::npos);
  Config sgd = Adam(2, 4);
  sgd.train.optimizer.kind = OptimizerKind::kSgd;
  const RangeLoader::Outcome optimizer = Loading(sgd, 0, dir).Load(kName);
  CHECK(optimizer.misfit);
  CHECK(optimizer.error.find("another optimizer: the checkpoint is of adam") != std::string::npos);
}

TEST_CASE(
    "range loader: only checkpoints of checkpoint.dir are opened, and the checkpoint.resume of this ps") {
  const Config config = Adam(1, 4);
  const std::string dir = Saved(config), elsewhere = Saved(config);
  const std::string path = elsewhere + "/" + kName;
  CHECK(Loading(config, 0, dir).Load(path).error.find("neither in checkpoint.dir nor") != std::string::npos);
  for (const std::string& name : {"../" + kName, dir + "/" + kName, std::string(), std::string("auto/..")}) {
    CAPTURE(name);
    CHECK(Loading(config, 0, dir).Load(name).error != "");
  }
  Config resumes = config;
  resumes.checkpoint.resume = path;
  CHECK(Loading(resumes, 0, dir).Load(path).error == "");
  CHECK(Loading(resumes, 0, "").Load(path).error == "");
  CHECK(Loading(resumes, 0, "").Load(kName).error != "");
  const RangeLoader::Outcome none = Loading(config, 0, dir).Load("step-000000001");
  CHECK(none.error != "");
  CHECK_FALSE(none.misfit);
}

TEST_CASE("range loader: the same question changes nothing, another one begins anew") {
  const Config config = Adam(1, 600000);
  const std::string dir = Saved(config);
  Loading f(config, 0, dir);
  CHECK_FALSE(f.loader.busy());
  CHECK_FALSE(f.loader.Turn());
  f.loader.Begin({2, 1}, kName);
  CHECK(f.loader.busy());
  CHECK_FALSE(f.loader.outcome());
  f.loader.Begin({2, 1}, "step-000000001");
  CHECK(f.loader.busy());
  f.loader.Begin({2, 2}, "step-000000001");
  CHECK_FALSE(f.loader.busy());
  CHECK(f.loader.question() == RangeLoader::Question{2, 2});
  REQUIRE(f.loader.outcome());
  CHECK(f.loader.outcome()->error != "");
  CHECK(f.Load(kName, 3).error == "");
  f.loader.Begin({2, 3}, kName);
  CHECK_FALSE(f.loader.busy());
  CHECK(f.loader.outcome()->step == kStep);
  f.loader.Begin({4, 3}, kName);
  CHECK(f.loader.busy());
  CHECK_FALSE(f.loader.outcome());
}

}  // namespace
}  // namespace dtrain
