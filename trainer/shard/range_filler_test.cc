#include "trainer/shard/range_filler.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "net/codec.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/optim/optimizer.h"
#include "trainer/shard/shard_test_util.h"

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

// A checkpoint.dir with what 2 ps have saved of the model of `config`.
std::string Saved(const Config& config, uint64_t salt = SmallCheckpoint().salt) {
  const std::string root = testing::NewDirectory();
  CheckpointDirectory directory(root);
  SmallCheckpoint of;
  of.layout = PlaceVariables(ModelVariables(config.model), 2, PlacementConfig());
  of.slots = SlotNames(config);
  of.step = kStep;
  of.salt = salt;
  SaveSmall(&directory, of);
  return root;
}

uint64_t ChecksumOf(const std::string& path) { return ReadManifest(path).checksum; }

// A ps that sees the directory of ps 0, or gets the pieces from `leader`.
struct Filling : ShardFixture {
  Filling(Config of, int ps, const std::string& dir)
      : ShardFixture((of.checkpoint.dir = dir, of), ps), empty(MakeParts(config, layout, ps)), index(ps) {}

  FillOrder OrderOf(const std::string& path, uint64_t number = 1) const {
    return {number, kName, kStep, ChecksumOf(path)};
  }
  FillOutcome Fill(const FillOrder& order) {
    told.clear();
    filler.Take(order);
    while (told.empty() && filler.busy()) filler.Turn(Clock::now());
    REQUIRE(!told.empty());
    return told.back();
  }
  FillOutcome Fill(const std::string& dir, uint64_t number = 1) {
    return Fill(OrderOf(dir + "/" + kName, number));
  }
  FillOutcome Keep(uint64_t number = 1) { return Fill({number, kName, kStep, 0, true}); }
  // Answers the questions from the checkpoint at `path`. `spoil`: with values that do not match the checksum.
  void Answer(const std::string& path, bool spoil = false, uint64_t order = 1) {
    CheckpointReader reader(path);
    const PartsOfPs parts = PartsOf(layout, index, static_cast<int64_t>(SlotNames(config).size()));
    for (const int64_t number : std::exchange(asked, {})) {
      std::vector<std::byte> piece;
      parts[0]->Read(&reader, number, &piece);
      const auto* const values = reinterpret_cast<const float*>(piece.data());
      Send(order, number, {values, values + piece.size() / sizeof(float)}, spoil);
    }
  }
  void Send(uint64_t order, int64_t number, const std::vector<float>& values, bool spoil = false) {
    const size_t bytes = values.size() * sizeof(float);
    const uint64_t sum = net::PayloadChecksum(values.data(), bytes) + (spoil ? 1 : 0);
    const net::Message message = encoder.Piece({}, order, 0, static_cast<uint64_t>(number), sum,
                                               {values.data(), bytes, nullptr, nullptr});
    const wire::Piece& piece = *net::Decode(message)->body_as_Piece();
    filler.OnPiece(piece, net::Tensor(message, piece));
  }
  // How many values of the range, slots included, differ from the saved ones.
  int Wrong(uint64_t salt = SmallCheckpoint().salt) {
    int wrong = 0;
    const auto values = ValuesOf(*empty.TakeSnapshot(), SlotNames(config).size());
    for (const TensorPiece& piece : PiecesOf(layout, index, static_cast<int>(values.size()) - 1)) {
      const std::string& variable = layout.variables[static_cast<size_t>(piece.variable)].name;
      const std::vector<float>& slot = values[static_cast<size_t>(piece.slot)];
      for (int64_t i = 0; i < piece.count; ++i) {
        const float expected = testing::ValueOf(salt, variable, piece.slot, piece.first + i);
        wrong += slot[static_cast<size_t>(piece.begin + i)] != expected;
      }
    }
    return wrong;
  }

  Shard empty;  // the shard to fill
  const int index;
  bool sees = true;
  Logger log{"ps", LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}};
  std::vector<int64_t> asked;
  std::vector<FillOutcome> told;
  net::Encoder encoder;
  RangeFiller filler{{config, layout, index, empty, log, [this] { return sees; },
                      [this](uint64_t, Piece piece) { asked.push_back(piece.number); },
                      [this](const FillOutcome& outcome) { told.push_back(outcome); }}};
};

TEST_CASE("range filler: initial values are made here, and count at once") {
  Filling f(Adam(2, 600000), 1, "");
  const FillOutcome outcome = f.Fill({1, "", 0, 0});
  CHECK(outcome.number == 1);
  CHECK(outcome.error == "");
  CHECK(outcome.kept);
  CHECK(f.empty.Report().parts[0].sum.crc == f.shard.Report().parts[0].sum.crc);
  f.filler.Take({2, kName, kStep, 1});  // too late
  CHECK_FALSE(f.filler.busy());
}

TEST_CASE(
    "range filler: what 2 ps wrote any number of ps reads, weights and slots, and it counts when told") {
  for (const int64_t inputs : {4, 600000}) {
    const std::string dir = Saved(Adam(1, inputs));
    for (const int count : {1, 2, 3, 7}) {
      for (int ps = 0; ps < count; ++ps) {
        CAPTURE(count);
        CAPTURE(ps);
        Filling f(Adam(count, inputs), ps, dir);
        CHECK(f.Fill(dir).error == "");
        CHECK_FALSE(f.empty.initialised());
        CHECK(f.Keep().kept);
        CHECK(f.empty.initialised());
        CHECK(f.empty.version(0) == kStep);
        CHECK(f.Wrong() == 0);
        CHECK(f.asked.empty());
      }
    }
  }
}

TEST_CASE("range filler: a ps that does not see the directory gets the same, of which few are open at once") {
  const std::string dir = Saved(Adam(1, 6000000));
  for (const int ps : {1, 2}) {
    Filling f(Adam(3, 6000000), ps, "");
    f.sees = false;
    f.filler.Take(f.OrderOf(dir + "/" + kName));
    while (f.told.empty()) {
      REQUIRE(!f.asked.empty());
      CHECK(f.asked.size() <= kOpenPieces);
      f.Answer(dir + "/" + kName);
      f.filler.Turn(Clock::now());
    }
    CHECK(f.told.back().error == "");
    CHECK_FALSE(f.empty.initialised());
    CHECK(f.Keep().kept);
    CHECK(f.Wrong() == 0);
  }
}

TEST_CASE(
    "range filler: a ps that has fetched its part of one that is damaged elsewhere fetches the next one") {
  const Config config = Adam(2, 600000);
  Filling f(config, 1, "");
  f.sees = false;
  const std::string paths[] = {Saved(config) + "/" + kName, Saved(config, 99) + "/" + kName};
  for (const uint64_t number : {1, 2}) {
    const std::string& path = paths[number - 1];
    f.told.clear();
    f.filler.Take({number, path, kStep, ChecksumOf(path)});
    while (f.told.empty()) {
      REQUIRE(!f.asked.empty());
      f.Answer(path, false, number);
      f.filler.Turn(Clock::now());
    }
    CHECK(f.told.back().error == "");
  }
  CHECK(f.Fill({2, paths[1], kStep, 0, true}).kept);
  CHECK(f.Wrong(99) == 0);
}

TEST_CASE("range filler: a piece that does not come, or is not what was asked for, is asked for again") {
  const std::string dir = Saved(Adam(1, 4)), path = dir + "/" + kName;
  Filling f(Adam(2, 4), 1, "");
  f.sees = false;
  f.filler.Take(f.OrderOf(path));
  const std::vector<int64_t> all = f.asked;
  REQUIRE(!all.empty());
  f.filler.Turn(Clock::now());
  CHECK(f.asked == all);
  f.Answer(path, /*spoil=*/true);
  f.Send(1, 0, {1, 2, 3, 4, 5, 6, 7});  // of the wrong size
  f.Send(2, 0, {1});                    // of another order
  f.Send(1, 1000, {1});                 // not asked for
  f.filler.Turn(Clock::now());
  CHECK(f.told.empty());
  CHECK(f.asked.empty());
  f.filler.Turn(Clock::now() + 2 * kAskForPieceAgain);
  CHECK(f.asked == all);
  f.Answer(path);
  f.filler.Turn(Clock::now());
  REQUIRE(f.told.size() == 1);
  CHECK(f.told[0].error == "");
}

TEST_CASE("range filler: a checkpoint of that name that is another one is not read here, but fetched") {
  const std::string dir = Saved(Adam(1, 4)), other = Saved(Adam(1, 4), 99);
  Filling f(Adam(2, 4), 1, other);
  f.filler.Take(f.OrderOf(dir + "/" + kName));
  CHECK_FALSE(f.filler.busy());
  CHECK_FALSE(f.asked.empty());
  Filling none(Adam(2, 4), 1, testing::NewDirectory());
  none.filler.Take(f.OrderOf(dir + "/" + kName));
  CHECK_FALSE(none.asked.empty());
}

TEST_CASE("range filler: a path is opened where checkpoint.resume names it here too, else it is fetched") {
  const Config config = Adam(2, 4);
  const std::string dir = Saved(config), path = Saved(config) + "/" + kName;
  FillOrder order{1, path, kStep, ChecksumOf(path)};
  Filling leads(config, 0, dir);
  CHECK(leads.Fill(order).error == "");
  Filling fetches(config, 1, dir);
  fetches.filler.Take(order);
  CHECK_FALSE(fetches.asked.empty());
  Config resumes = config;
  resumes.checkpoint.resume = path;
  Filling reads(resumes, 1, "");
  CHECK(reads.Fill(order).error == "");
  CHECK(reads.asked.empty());
}

void Flip(const std::string& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const auto byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(at);
  file.put(byte);
}

TEST_CASE(
    "range filler: whichever byte of a shard file is damaged, one of all ps finds it and names the file") {
  const Config config = Adam(3, 8);
  const std::string dir = Saved(config);
  const uint64_t manifest = ChecksumOf(dir + "/" + kName);
  for (const std::string& name : {ShardName(0, 2), ShardName(1, 2)}) {
    const std::string path = dir + "/" + kName + "/" + name;
    const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
    for (int64_t at = 0; at < size; ++at) {
      CAPTURE(name);
      CAPTURE(at);
      Flip(path, at);
      std::string error;
      for (int ps = 0; ps < 3; ++ps) {
        Filling f(config, ps, dir);
        f.filler.Take({1, kName, kStep, manifest});
        while (f.filler.busy()) f.filler.Turn(Clock::now());
        if (!f.told.empty() && error.empty()) error = f.told.back().error;
      }
      CHECK(error.find(name) != std::string::npos);
      Flip(path, at);
    }
  }
}

TEST_CASE("range filler: what a run begins with is at version 0, and is read where the config names it") {
  Config config = Adam(2, 4);
  const std::string dir = Saved(config), path = dir + "/" + kName;
  FillOrder order{1, path, 0, ChecksumOf(path), false, true, kStep};
  FillOrder keep = order;
  keep.keep = true;
  config.checkpoint.start_from = dir + "/";
  Filling f(config, 1, "");
  CHECK(f.Fill(order).error == "");
  CHECK(f.asked.empty());
  CHECK(f.Fill(keep).kept);
  CHECK(f.Wrong() == 0);
  CHECK(f.empty.version(0) == 0);
  config.checkpoint.start_from = "";
  Filling asks(config, 1, "");
  asks.filler.Take(order);
  CHECK_FALSE(asks.asked.empty());
  config.train.optimizer.kind = OptimizerKind::kSgd;
  Filling weights(config, 0, "");
  CHECK(weights.Fill(order).error == "");
  order = {2, path, kStep, ChecksumOf(path)};
  CHECK(weights.Fill(order).error.find("another optimizer") != std::string::npos);
}

TEST_CASE("range filler: of a damaged one nothing counts, and an older one may follow") {
  const Config config = Adam(1, 600000);
  const std::string dir = Saved(config), older = Saved(config, 99);
  Flip(dir + "/" + kName + "/shard-1-of-2", 1000);  // after what is read first
  Config resumes = config;
  Filling f(resumes, 0, dir);
  CHECK(f.Fill(dir).error.find("shard-1-of-2 is damaged at byte ") == 0);
  CHECK_FALSE(f.Keep().kept);
  CHECK_FALSE(f.empty.initialised());
  const std::string path = older + "/" + kName;
  CHECK(f.Fill({2, path, kStep, ChecksumOf(path)}).error == "");
  CHECK(f.Fill({2, path, kStep, 0, true}).kept);
  CHECK(f.Wrong(99) == 0);
}

TEST_CASE("range filler: an order that comes again is answered again, and an older one not at all") {
  const std::string dir = Saved(Adam(1, 600000));
  Filling f(Adam(1, 600000), 0, dir);
  const FillOrder order = f.OrderOf(dir + "/" + kName, 2);
  f.filler.Take(order);
  f.filler.Take(order);
  CHECK(f.told.empty());
  CHECK(f.Fill(order).error == "");
  CHECK(f.Fill(order).number == 2);
  f.told.clear();
  f.filler.Take({1, "", 0, 0});
  CHECK_FALSE(f.filler.busy());
  CHECK_FALSE(f.empty.initialised());
  CHECK(f.Keep(2).kept);
  CHECK(f.Fill(order).kept);
}

}  // namespace
}  // namespace dtrain
