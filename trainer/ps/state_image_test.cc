#include "trainer/ps/state_image.h"

#include <doctest/doctest.h>

#include <random>

namespace dtrain {
namespace {

TEST_CASE("state image: a copy that takes all changes is the same, whatever changes") {
  std::mt19937 random(1);
  const auto below = [&](size_t count) { return static_cast<size_t>(random() % count); };
  StateImage here, copy;
  std::vector<std::string> sections(4);
  for (int turn = 0; turn < 2000; ++turn) {
    CAPTURE(turn);
    std::string changes;
    for (size_t i = 0; i < sections.size(); ++i) {
      std::string& section = sections[i];
      if (below(10) == 0) section.resize(below(300), 'a');
      for (size_t change = below(4); change > 0 && !section.empty(); --change) {
        section[below(section.size())] = static_cast<char>(random());
      }
      here.Put(i, section, &changes);
    }
    REQUIRE(copy.Take(changes));
    for (size_t i = 0; i < sections.size(); ++i) REQUIRE(copy.section(i) == sections[i]);
  }
  StateImage whole;
  REQUIRE(whole.Take(here.All()));
  for (size_t i = 0; i < sections.size(); ++i) CHECK(whole.section(i) == sections[i]);
  CHECK(whole.section(9).empty());
}

TEST_CASE("state image: what has not changed is not told, and of a large section the rest neither") {
  StateImage here;
  std::string changes, section(10'000, 'x');
  here.Put(0, section, &changes);
  CHECK(changes.size() > section.size());
  changes.clear();
  here.Put(0, section, &changes);
  CHECK(changes.empty());
  section[0] = section[9'000] = 'y';
  here.Put(0, section, &changes);
  CHECK(changes.size() < 100);
}

TEST_CASE("state image: changes that are cut short or name what is not there are refused") {
  StateImage here, copy;
  std::string changes;
  here.Put(0, std::string(100, 'x'), &changes);
  for (size_t size = 1; size < changes.size(); ++size) CHECK_FALSE(StateImage().Take(changes.substr(0, size)));
  for (size_t place = 0; place < 16; ++place) {
    std::string wrong = changes;
    wrong[place] = static_cast<char>(0xff);
    StateImage().Take(wrong);  // sanitizers see what it writes
  }
  std::string huge = changes;
  huge[7] = 0x7f;
  CHECK_FALSE(copy.Take(huge));
}

}  // namespace
}  // namespace dtrain
