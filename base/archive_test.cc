#include "base/archive.h"

#include <doctest/doctest.h>

#include <limits>

namespace dtrain {
namespace {

struct Inner {
  int32_t number = 0;
  std::optional<std::string> text;
  template <typename Archive>
  void State(Archive& archive) {
    archive(number, text);
  }
};

struct Outer {
  enum class Kind { kOne, kTwo };
  bool flag = false;
  Kind kind = Kind::kOne;
  float single = 0;
  double real = 0;
  uint64_t word = 0;
  TimePoint time, unset;
  std::vector<bool> bits;
  std::vector<Inner> list;
  std::deque<int64_t> queue;
  std::map<int, std::pair<int, std::string>> map;
  std::array<float, 3> array{};
  template <typename Archive>
  void State(Archive& archive) {
    archive(flag, kind, single, real, word, time, unset, bits, list, queue, map, array);
  }
};

Outer Sample() {
  Outer sample;
  sample.flag = true;
  sample.kind = Outer::Kind::kTwo;
  sample.single = -0.5F;
  sample.real = std::numeric_limits<double>::quiet_NaN();
  sample.word = std::numeric_limits<uint64_t>::max();
  sample.time = Clock::now();
  sample.bits = {true, false, true};
  sample.list = {{-7, "text"}, {8, std::nullopt}};
  sample.queue = {1, 2};
  sample.map = {{3, {4, "four"}}};
  sample.array = {1, 2, 3};
  return sample;
}

std::string Written(Outer object) {
  Archive archive;
  archive(object);
  return std::string(archive.bytes());
}

TEST_CASE("archive: what was written is read, and written again as the same bytes") {
  const Outer sample = Sample();
  const std::string bytes = Written(sample);
  Outer read;
  read.list = {{1, "gone"}};
  read.map = {{9, {}}};
  Archive archive(bytes);
  archive(read);
  REQUIRE_FALSE(archive.failed());
  CHECK(Written(read) == bytes);
  CHECK(read.time == sample.time);
  CHECK(read.unset == TimePoint());
  CHECK(read.list.size() == 2);
  CHECK(read.list[0].text == "text");
  CHECK(read.map.at(3).second == "four");
  CHECK(read.real != read.real);
  CHECK(read.word == sample.word);
}

TEST_CASE("archive: bytes that are cut short, or too many, are not taken for the state") {
  const std::string bytes = Written(Sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    Outer read;
    Archive archive(std::string_view(bytes).substr(0, size));
    archive(read);
    CHECK(archive.failed());
  }
  Outer read;
  const std::string longer = bytes + "x";
  Archive archive(longer);
  archive(read);
  CHECK(archive.failed());
}

}  // namespace
}  // namespace dtrain
