#include "trainer/shard/shard_saver.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/file_limit.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/shard/shard_test_util.h"

namespace dtrain {
namespace {

using testing::FileContent;
using Values = std::vector<float>;

constexpr int64_t kSlots = 2;

// Adam over `inputs` weights and a bias, on 2 ps.
Config Adam(int64_t inputs) {
  Config config = LinearCluster(2, 1, 100);
  config.model.inputs = inputs;
  config.train.optimizer.kind = OptimizerKind::kAdam;
  return config;
}

// Checks that the bytes of a shard file are these values with these checksums.
void CheckFile(const std::string& bytes, const Layout& layout, int ps, const std::vector<Values>& values,
               const std::vector<uint64_t>& checksums) {
  const std::vector<TensorPiece> pieces = PiecesOf(layout, ps, kSlots);
  REQUIRE(checksums.size() == pieces.size());
  size_t at = kShardAlignment;
  int wrong = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto size = static_cast<size_t>(pieces[i].count) * sizeof(float);
    REQUIRE(at + size <= bytes.size());
    const float* const expected = values[static_cast<size_t>(pieces[i].slot)].data() + pieces[i].begin;
    wrong += std::memcmp(bytes.data() + at, expected, size) != 0;
    wrong += checksums[i] != PieceChecksum(expected, size);
    at += static_cast<size_t>(Padded(static_cast<int64_t>(size)));
  }
  CHECK(wrong == 0);
  CHECK(at == bytes.size());
}

bool Wait(ShardSaver& saver) {
  return PollUntil([&] { return saver.Poll(); });
}

TEST_CASE(
    "shard saver: the file has the range of the moment of the snapshot, whatever is applied meanwhile") {
  for (const int64_t inputs : {4, 1200000}) {  // 1 and 3 blocks each
    for (const int ps : {0, 1}) {
      ShardFixture f(Adam(inputs), ps);
      f.Update();
      const std::shared_ptr<ShardSnapshot> snapshot = f.shard.TakeSnapshot();
      const std::vector<Values> expected = ValuesOf(*snapshot, kSlots);
      const std::string directory = testing::NewDirectory();
      ShardSaver saver(f.layout, ps, kSlots);
      saver.Begin(1, snapshot, directory);
      f.Update();
      CHECK(Wait(saver));
      REQUIRE(saver.Of(1) != nullptr);
      CHECK(saver.Of(1)->error == "");
      CHECK(ValuesOf(*f.shard.TakeSnapshot(), kSlots) != expected);
      CheckFile(FileContent(directory + "/" + ShardName(ps, 2)), f.layout, ps, expected,
                saver.Of(1)->part.checksums);
    }
  }
}

TEST_CASE("shard saver: it is busy until its end is seen, which is told once; of others nothing is known") {
  ShardFixture f(Adam(4));
  const std::string directory = testing::NewDirectory();
  const std::string other = testing::NewDirectory();
  ShardSaver saver(f.layout, 0, kSlots);
  CHECK_FALSE(saver.busy());
  CHECK_FALSE(saver.Poll());
  CHECK(saver.Of(0) == nullptr);
  saver.Begin(1, f.shard.TakeSnapshot(), directory);
  CHECK(saver.busy());
  CHECK(saver.Of(1) == nullptr);
  saver.Begin(2, f.shard.TakeSnapshot(), other);  // the first has not ended
  CHECK(Wait(saver));
  CHECK_FALSE(saver.busy());
  CHECK_FALSE(saver.Poll());
  CHECK(saver.Of(1) != nullptr);
  CHECK(saver.Of(2) == nullptr);
  CHECK(testing::NamesIn(other).empty());
  saver.Begin(1, f.shard.TakeSnapshot(), other);  // number 1 was started already
  CHECK_FALSE(saver.busy());
  saver.Begin(2, f.shard.TakeSnapshot(), other);
  CHECK(saver.Of(1) == nullptr);
  CHECK(Wait(saver));
  CHECK(saver.Of(2)->error == "");
  CHECK(testing::NamesIn(other) == std::vector<std::string>{"shard-0-of-2"});
}

TEST_CASE("shard saver: a directory that is not there, or full, is told by the file's name") {
  ShardFixture f(Adam(4000));
  const std::string directory = testing::NewDirectory();
  ShardSaver saver(f.layout, 0, kSlots);
  saver.Begin(1, f.shard.TakeSnapshot(), directory + "/none");
  Wait(saver);
  CHECK(saver.Of(1)->error.find(directory + "/none/shard-0-of-2") != std::string::npos);
  CHECK(saver.Of(1)->error.find("No such file or directory") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(directory + "/none"));
  {
    const FileLimit full(100);
    saver.Begin(2, f.shard.TakeSnapshot(), directory);
    Wait(saver);
  }
  CHECK(saver.Of(2)->error.find(directory + "/shard-0-of-2") != std::string::npos);
  CHECK(saver.Of(2)->error.find("File too large") != std::string::npos);
  CHECK(saver.Of(2)->part.checksums.empty());
  std::filesystem::remove(directory + "/shard-0-of-2");
  saver.Begin(3, f.shard.TakeSnapshot(), directory);
  Wait(saver);
  CHECK(saver.Of(3)->error == "");
}

TEST_CASE("shard saver: a snapshot that is dropped ends the writing, and so does the end of the saver") {
  ShardFixture f(Adam(1200000));
  const std::shared_ptr<ShardSnapshot> dropped = f.shard.TakeSnapshot();
  f.shard.Drop(*dropped);
  ShardSaver saver(f.layout, 0, kSlots);
  saver.Begin(1, dropped, testing::NewDirectory());
  Wait(saver);
  CHECK(saver.Of(1)->error == "the checkpoint was given up");

  const std::shared_ptr<ShardSnapshot> snapshot = f.shard.TakeSnapshot();
  ShardSaver(f.layout, 0, kSlots).Begin(1, snapshot, testing::NewDirectory());
  CHECK_FALSE(snapshot->Lend({0, snapshot->parts()[0]->piece_count() - 1}));
}

TEST_CASE("shard saver: a range with more pieces than one message tells checksums of has too many") {
  constexpr int64_t kMax = 122880;
  for (const int64_t count : {kMax, kMax + 1}) {
    std::vector<Variable> variables(static_cast<size_t>(count));
    for (size_t i = 0; i < variables.size(); ++i) {
      variables[i].name = std::to_string(i);
      variables[i].rows = 1;
    }
    const Layout layout = PlaceVariables(variables, 1, PlacementConfig());
    CHECK(HasTooManyPieces(layout, 0, 0) == (count > kMax));
  }
}

}  // namespace
}  // namespace dtrain
