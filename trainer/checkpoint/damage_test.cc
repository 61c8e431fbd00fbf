// Every damage to a checkpoint is found.
#include <doctest/doctest.h>

#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/checkpoint_test_util.h"

namespace dtrain::testing {
namespace {

// A small good checkpoint, and a newer one that is damaged in many ways.
class Damage {
 public:
  Damage() {
    directory_.Prepare();
    SmallCheckpoint of;
    of.layout = SmallLayout(2, 2);
    of.slots = {"m"};
    of.step = 1;
    older_ = SaveSmall(&directory_, of);
    of.step = 2;
    newer_ = SaveSmall(&directory_, of);
  }
  const std::string& newer() const { return newer_; }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(newer_ + "/" + name, std::ios::binary | std::ios::trunc) << content;
  }
  // Why the newer checkpoint was skipped; empty: it was not. Checks that both ways to look agree.
  std::string Found() const {
    try {
      CheckpointReader(newer_).Verify();
      return "";
    } catch (const BadCheckpoint&) {
    }
    std::vector<std::string> skipped;
    if (directory_.FindNewest(&skipped) != older_ || skipped.size() != 1) return "";
    return skipped[0];
  }

 private:
  CheckpointDirectory directory_{NewDirectory()};
  std::string older_;
  std::string newer_;
};

TEST_CASE("damage: every flipped byte of every file is found, and the older checkpoint is used") {
  Damage damage;
  REQUIRE(NamesIn(damage.newer()).size() == 4);
  for (const std::string& name : NamesIn(damage.newer())) {
    const std::string good = FileContent(damage.newer() + "/" + name);
    REQUIRE(good.size() > 10);
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
      damage.Write(name, bytes);
      CAPTURE(name);
      CAPTURE(i);
      CHECK(damage.Found().find(name) != std::string::npos);
    }
    damage.Write(name, good);
    CHECK(damage.Found() == "");
  }
}

TEST_CASE("damage: every truncation, every longer file and every missing one is found") {
  Damage damage;
  for (const std::string& name : NamesIn(damage.newer())) {
    const std::string good = FileContent(damage.newer() + "/" + name);
    for (size_t size = 0; size <= good.size() + 64; ++size) {
      if (size == good.size()) continue;
      std::string bytes = good;
      bytes.resize(size);
      damage.Write(name, bytes);
      CAPTURE(name);
      CAPTURE(size);
      CHECK(damage.Found().find(name) != std::string::npos);
    }
    std::filesystem::remove(damage.newer() + "/" + name);
    CHECK(damage.Found() == "step-000000002: " + name + " is missing; skipped");
    damage.Write(name, good);
    CHECK(damage.Found() == "");
  }
}

TEST_CASE("damage: the line says which file is damaged, where, and what its checksum should be") {
  Damage damage;
  std::string bytes = FileContent(damage.newer() + "/shard-1-of-2");
  bytes[130] = static_cast<char>(bytes[130] ^ 1);
  damage.Write("shard-1-of-2", bytes);
  const std::string line = damage.Found();
  CAPTURE(line);
  CHECK(line.find("step-000000002: shard-1-of-2 is damaged at byte 128: the checksum of the 64 bytes from "
                  "there is ") == 0);
  CHECK(line.find("; skipped") == line.size() - 9);
}

TEST_CASE("damage: files that changed places are found") {
  Damage damage;
  const std::string first = FileContent(damage.newer() + "/shard-0-of-2");
  damage.Write("shard-0-of-2", FileContent(damage.newer() + "/shard-1-of-2"));
  damage.Write("shard-1-of-2", first);
  CHECK(damage.Found() != "");
}

}  // namespace
}  // namespace dtrain::testing
