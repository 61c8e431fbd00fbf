// Checkpoints of what has changed since another one (checkpoint.delta).
#include <doctest/doctest.h>

#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/manifest_generated.h"
#include "trainer/checkpoint/table_test_util.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

constexpr char kStep1[] = "step-000000001", kStep2[] = "step-000000002", kStep3[] = "step-000000003",
               kStep4[] = "step-000000004";

void Flip(const std::string& path, int64_t at) {
  std::string bytes = FileContent(path);
  const auto i = static_cast<size_t>(at < 0 ? static_cast<int64_t>(bytes.size()) + at : at);
  bytes[i] = static_cast<char>(bytes[i] ^ 1);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A chain: all rows at step 1, deltas at steps 2 and 3, each with other rows than the one before.
struct Chain {
  explicit Chain(int ps = 2) : table(ps) {
    table.SetEach(0, 10, 1);
    at.push_back(table.rows());
    table.SaveAll(&directory, 1);
    table.SetEach(5, 4001, 2);
    table.SetEach(0, 5000, 0);
    at.push_back(table.rows());
    table.SaveDelta(&directory, 2);
    table.SetEach(7, 6007, 3);
    table.Set(5, 0);
    at.push_back(table.rows());
    table.SaveDelta(&directory, 3);
  }
  std::string PathOf(const char* name) const { return directory.PathOf(name); }
  std::optional<std::string> Newest() {
    skipped.clear();
    return directory.FindNewest(&skipped);
  }

  CheckpointDirectory directory{NewDirectory()};
  SmallTable table;
  std::vector<TableRows> at;  // the rows at each step
  std::vector<std::string> skipped;
};

TEST_CASE("delta: with its base it has the rows of its step, in whole and in part, whatever wrote it") {
  for (const int ps : {1, 2, 3, 5}) {
    CAPTURE(ps);
    Chain chain(ps);
    int64_t step = 1;
    for (const TableRows& expected : chain.at) {
      const std::string path = chain.directory.PathOf(CheckpointName(step++));
      CheckpointReader(path).Verify();
      CHECK(ReadTable(path) == expected);
      for (const auto& [begin, end] :
           {std::pair(0, 77), std::pair(4999, 140001), std::pair(200000, 400000)}) {
        CHECK(ReadTable(path, begin, end) ==
              TableRows(expected.lower_bound(begin), expected.lower_bound(end)));
      }
    }
    const auto bytes = [&](const char* name) { return ReadManifest(chain.PathOf(name)).bytes(); };
    CHECK(bytes(kStep2) < bytes(kStep1) / 4);
  }
}

TEST_CASE("delta: one without a change is an empty file, and has the rows of its base") {
  CheckpointDirectory directory(NewDirectory());
  SmallTable table;
  table.SetEach(0, 100, 1);
  table.SaveAll(&directory, 1);
  const std::string path = table.SaveDelta(&directory, 2);
  for (const StoredShard& shard : ReadManifest(path).shards) CHECK(shard.pieces.empty());
  CHECK(ReadTable(path) == table.rows());
}

TEST_CASE("delta: its base is found where it was moved aside, and through a link to the delta") {
  Chain chain;
  SmallTable other;
  other.SaveAll(&chain.directory, 1);
  CHECK(ReadTable(chain.PathOf(kStep3)) == chain.at[2]);
  const std::string link = NewDirectory() + "/latest";
  fs::create_directory_symlink(fs::absolute(chain.PathOf(kStep3)), link);
  CHECK(ReadTable(link) == chain.at[2]);
}

TEST_CASE("delta: without its base, or with a damaged one, it is passed over for an older chain") {
  const auto remove = [](const char* file) {
    return [=](const std::string& base) { fs::remove_all(base + "/" + file); };
  };
  const auto flip = [](const char* file, int64_t at) {
    return [=](const std::string& base) { Flip(base + "/" + file, at); };
  };
  const std::pair<std::function<void(const std::string&)>, const char*> damages[] = {
      {remove(""), "its base step-000000002: there is no such directory; skipped"},
      {remove("manifest"), "its base step-000000002: manifest is missing; skipped"},
      {remove("shard-1-of-2"), "its base step-000000002: shard-1-of-2 is missing; skipped"},
      {flip("manifest", 100), "its base step-000000002: manifest is damaged: the checksum of its first "},
      {flip("config.yaml", 0), "its base step-000000002: config.yaml is damaged: the checksum of its 18 "},
      {flip("shard-1-of-2", 0), "its base step-000000002: shard-1-of-2 does not begin with the 64 bytes"},
      {flip("shard-0-of-2", 64), "its base step-000000002: shard-0-of-2 is damaged at byte 64: "},
      {flip("shard-1-of-2", -1), "its base step-000000002: shard-1-of-2 is damaged at byte "},
      {[](const std::string& base) { fs::resize_file(base + "/shard-0-of-2", 1000); },
       "its base step-000000002: shard-0-of-2 has 1000 bytes; must be "},
  };
  for (const auto& [damage, line] : damages) {
    CAPTURE(line);
    CheckpointDirectory directory(NewDirectory());
    SmallTable table;
    table.SetEach(0, 10, 1);
    table.SaveAll(&directory, 0);
    table.SetEach(3, 100, 2);
    const std::string older = table.SaveDelta(&directory, 1);
    const TableRows rows = table.rows();
    const std::string base = table.SaveAll(&directory, 2);
    table.Set(9, 3);
    table.SaveDelta(&directory, 3);
    table.Set(10, 3);
    table.SaveDelta(&directory, 4);
    damage(base);
    std::vector<std::string> skipped;
    CHECK(directory.FindNewest(&skipped) == older);
    CHECK(ReadTable(older) == rows);
    const auto said = [&](const char* name) {
      const auto is = [&](const std::string& each) {
        return each.find(name + std::string(": ") + line) == 0;
      };
      return std::any_of(skipped.begin(), skipped.end(), is);
    };
    CHECK(said(kStep4));
    CHECK(said(kStep3));
  }
}

TEST_CASE("delta: every flipped byte of it is found, and the delta before it is used") {
  Chain chain;
  for (const std::string& name : NamesIn(chain.PathOf(kStep3))) {
    const std::string path = chain.PathOf(kStep3) + "/" + name;
    const auto size = static_cast<int64_t>(FileContent(path).size());
    for (int64_t at = 0; at < size; at += std::max<int64_t>(1, size / 50)) {
      Flip(path, at);
      CAPTURE(path);
      CAPTURE(at);
      CHECK(chain.Newest() == chain.PathOf(kStep2));
      CHECK(chain.skipped.size() == 1);
      Flip(path, at);
    }
  }
  CHECK(chain.Newest() == chain.PathOf(kStep3));
}

TEST_CASE("delta: another checkpoint in the place of its base is none, nor is another delta") {
  Chain chain;
  const Manifest second = ReadManifest(chain.PathOf(kStep2));
  CHECK_THROWS_WITH_AS(FindBase(chain.PathOf(kStep3), {second.sequence, second.step, second.checksum}),
                       doctest::Contains("its base step-000000002: is another checkpoint than when"),
                       BadCheckpoint);
  fs::remove_all(chain.PathOf(kStep1));
  SmallTable other;
  other.SetEach(0, 10, 1);
  other.SaveAll(&chain.directory, 1);
  CHECK_THROWS_WITH_AS(
      CheckpointReader(chain.PathOf(kStep3)),
      doctest::Contains("its base step-000000001: is another checkpoint than when the delta was written"),
      BadCheckpoint);
}

TEST_CASE("delta: pruning keeps the bases of those that stay, and only these") {
  Chain chain;
  chain.directory.Prune(1);
  CHECK(NamesIn(chain.directory.path()) == std::vector<std::string>{kStep1, kStep3});
  CHECK(ReadTable(chain.PathOf(kStep3)) == chain.at[2]);

  // The best one is a delta of an older base.
  chain.directory.WriteBest(kStep3);
  chain.table.SaveAll(&chain.directory, 4);
  chain.directory.Prune(1, chain.directory.ReadBest());
  CHECK(NamesIn(chain.directory.path()) == std::vector<std::string>{"best", kStep1, kStep3, kStep4});
  chain.directory.Prune(1);
  CHECK(NamesIn(chain.directory.path()) == std::vector<std::string>{"best", kStep4});
}

TEST_CASE("delta: its manifest names the base, and one that breaks the rules is refused") {
  Chain chain;
  const Manifest base = ReadManifest(chain.PathOf(kStep1));
  Manifest delta = ReadManifest(chain.PathOf(kStep3));
  REQUIRE(delta.base);
  CHECK_FALSE(base.base);
  CHECK(delta.base->sequence == 1);
  CHECK(delta.base->step == 1);
  CHECK(delta.base->checksum == base.checksum);
  const std::string bytes = FileContent(chain.PathOf(kStep1) + "/manifest");
  CHECK(bytes.substr(bytes.size() - 8) == std::string(reinterpret_cast<const char*>(&base.checksum), 8));
  // A reader of before deltas refuses it by its format.
  const auto format_of = [&](const char* name) {
    return stored::GetManifest(FileContent(chain.PathOf(name) + "/manifest").data())->format();
  };
  CHECK(format_of(kStep1) == 3);
  CHECK(format_of(kStep3) == 5);

  delta.base->sequence = 3;
  CHECK(ManifestProblem(delta) == "a base of sequence 3, step 1");
  delta.base->sequence = 0;
  CHECK(ManifestProblem(delta) == "a base of sequence 0, step 1");
  delta.base = {1, -1, 7};
  CHECK(ManifestProblem(delta) == "a base of sequence 1, step -1");
  Manifest dense = ManifestOf(SmallCheckpoint(),
                              {std::vector<uint64_t>{1, 2, 3}, std::vector<uint64_t>{4, 5, 6, 7, 8, 9}});
  dense.sequence = 2;
  dense.base = {1, 1, 7};
  CHECK(ManifestProblem(dense) == "a base, and no table");
}

}  // namespace
}  // namespace dtrain::testing
