#include "trainer/checkpoint/shard_writer.h"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/model/layout.h"

namespace dtrain::testing {
namespace {

TEST_CASE("shard writer: pieces lie at multiples of 64 bytes, and their checksums include the padding") {
  const std::string path = NewDirectory() + "/shard";
  const std::vector<float> values(33, 1.5f);
  ShardWriter writer(path);
  std::string all(kShardHeader);
  for (const size_t count : {1, 15, 16, 17, 33}) {
    const int64_t begin = writer.bytes();
    const uint64_t checksum = writer.Add(values.data(), count * sizeof(float));
    CHECK(begin % 64 == 0);
    std::string padded(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
    padded.resize(static_cast<size_t>(writer.bytes() - begin));
    CHECK(checksum == Checksum(padded.data(), padded.size()));
    all += padded;
  }
  writer.Finish();
  CHECK(FileContent(path) == all);
  CHECK(writer.bytes() == 64 * (1 + 1 + 1 + 1 + 2 + 3));
}

TEST_CASE("shard writer: checksums are XXH3-64") {
  CHECK(Checksum("", 0) == 0x2d06800538d394c2);  // of no bytes, from the specification
}

TEST_CASE("shard writer: many windows are written as they were given") {
  const std::string path = NewDirectory() + "/shard";
  std::string all(kShardHeader);
  {
    ShardWriter writer(path);
    for (int i = 0; i < 27; ++i) {
      const std::string piece(1 << 20, static_cast<char>('a' + i));
      writer.Add(piece.data(), piece.size());
      all += piece;
    }
    writer.Finish();
  }
  CHECK(FileContent(path) == all);
}

TEST_CASE(
    "shard writer: a file that is there, or a directory that is not, is a failure that names the path") {
  const std::string path = NewDirectory() + "/shard";
  std::ofstream(path) << "mine";
  CHECK_THROWS_AS(ShardWriter{path}, IoError);
  CHECK(FileContent(path) == "mine");
  try {
    ShardWriter writer(path + "/shard-0-of-1");
    FAIL("it was made");
  } catch (const IoError& error) {
    CHECK(std::string(error.what()).find(path + "/shard-0-of-1: cannot be written: Not a directory") == 0);
  }
}

// Older tmpfs takes no writes past the cache; others take only whole sectors.
TEST_CASE("shard writer: a file of any length is the same on a file system in memory") {
  std::string in_memory = "/dev/shm/dtrain.XXXXXX";
  REQUIRE(mkdtemp(in_memory.data()) != nullptr);
  for (const size_t values : {size_t{1}, size_t{1008}, size_t{1} << 20, (size_t{1} << 20) + 17}) {
    const std::vector<float> piece(values, 2.5f);
    std::vector<std::string> contents;
    for (const std::string& root : {NewDirectory(), in_memory}) {
      const std::string path = fmt::format("{}/shard-{}", root, values);
      ShardWriter writer(path);
      writer.Add(piece.data(), piece.size() * sizeof(float));
      writer.Finish();
      contents.push_back(FileContent(path));
      unlink(path.c_str());
    }
    CHECK(contents[0].size() == 64 + static_cast<size_t>(Padded(static_cast<int64_t>(values) * 4)));
    CHECK(contents[0] == contents[1]);
  }
  CHECK(rmdir(in_memory.c_str()) == 0);
}

TEST_CASE("pieces: each element of each range and slot is in one, within a block and a variable") {
  for (const PlacementPolicy policy : {PlacementPolicy::kBytes, PlacementPolicy::kRoundRobin}) {
    for (const int ps_count : {1, 2, 3, 7}) {
      const Layout layout = SmallLayout(ps_count, 200000, policy);
      for (int ps = 0; ps < ps_count; ++ps) {
        const Range range = layout.ps[static_cast<size_t>(ps)];
        int64_t due = 0, begin = 0;  // `begin`: of the block
        int slot = 0;
        for (const TensorPiece& piece : PiecesOf(layout, ps, 2)) {
          if (due == std::min(range.size(), begin + kBlockValues)) {
            slot = (slot + 1) % 3;
            if (slot == 0) begin = due;
            due = begin;
          }
          const Variable& variable = layout.variables[static_cast<size_t>(piece.variable)];
          CHECK(piece.slot == slot);
          CHECK(piece.begin == due);
          CHECK(variable.offset + piece.first == range.begin + due);
          CHECK(piece.count >= 1);
          CHECK(piece.first + piece.count <= variable.size());
          CHECK(due / kBlockValues == (due + piece.count - 1) / kBlockValues);
          due += piece.count;
        }
        CHECK((range.size() == 0 || (slot == 2 && due == range.size())));
      }
    }
  }
}

TEST_CASE("pieces: a ps without parameters has none") {
  CHECK(PiecesOf(SmallLayout(3, 5, PlacementPolicy::kRoundRobin), 2, 1).empty());
}

}  // namespace
}  // namespace dtrain::testing
