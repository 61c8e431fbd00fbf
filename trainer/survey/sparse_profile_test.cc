#include "trainer/survey/sparse_profile.h"

#include <doctest/doctest.h>

#include <string>

#include "trainer/input/data_test_util.h"

namespace dtrain {
namespace {

SparseProfile ProfileOf(const std::string& content) {
  return ProfileSparseRows(WritePlain("rows.txt", content));
}

std::string Repeat(int times, const std::string& lines) {
  std::string text;
  for (int i = 0; i < times; ++i) text += lines;
  return text;
}

TEST_CASE("sparse profile: libsvm is known with comments, groups, names, and rows without features") {
  for (const std::string lines :
       {"1 1:0.5 3:1.25 # doc 5\n0 2:1 # doc 6\n", "0\n1 1:0.5 3:1\n", "yes 1:0.5 3:1.25\nno 1:2 2:3\n",
        "0 qid:1 1:0.5 3:1\n2 qid:2 1:0\n", "red qid:1 1:0.5\nblue qid:1 3:1\n", "+1\t1:0.5\t3:1\n-1\t2:1 \n",
        "# made by hand\n1 7:1\n\n", "1 1:0.5\n1 x\n1 2:3\n0 3:1\n0 4:1\n1 2:1\n"}) {
    CAPTURE(lines);
    CHECK(ProfileOf(Repeat(5, lines)).format == DataFormat::kLibsvm);
  }
  const SparseProfile groups = ProfileOf(Repeat(5, "0 qid:1 1:0.5 3:1\n2 qid:2 1:0\n1 qid:2\n"));
  CHECK(groups.rows == 15);
  CHECK(groups.faults.count == 0);
  CHECK(groups.label.distinct == 3);
  CHECK(groups.features == 2);
}

TEST_CASE("sparse profile: vw is known with tags, weights, names for labels, and rows without any") {
  for (const std::string lines :
       {"1 1.0 'r0|f x:0.095\n-1 1.0 'r1|f x:1 y\n", "1 2 tag|f x:0.5\n", "|f x:0.5\n1 |f x:1\n",
        "yes |f x:0.5 berlin\nno |f x:1\n", "1 | 3:1 4\n-1 | 5\n", "|f a\n|g b\n1 |f a c\n0 |f a d\n",
        "'r1|f a\n1 'r2|f a\n", "1 |\n0 |f a b\n"}) {
    CAPTURE(lines);
    const SparseProfile rows = ProfileOf(Repeat(5, lines));
    CHECK(rows.format == DataFormat::kVw);
    CHECK(rows.faults.count == 0);
  }
}

TEST_CASE("sparse profile: tables with colons, bars and blanks are none") {
  for (const std::string lines :
       {"1 12:30 text\n2 13:45 more\n", "alice 12:30\nbob 9:15\n", "1\n0\n", "1|2|3\n", "1 | 2 | 3\n",
        "anna | new york | 5\n", "1 |red |big\n", "a|b c|d:1\n", "1 2 3\n", "x y:1 z:2\n", "a,1:2 3:4\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n", "1 qid\n"}) {
    CAPTURE(lines);
    CHECK(ProfileOf(Repeat(5, lines)).format == DataFormat::kNone);
  }
}

TEST_CASE("sparse profile: few rows of LABEL:WEIGHT have no label, and most have a weight") {
  const std::string rows = Repeat(12, "0 1:0.5 3:1\n1 2:1\n");
  const SparseProfile few = ProfileOf(rows + "1:0.8 3:-1\n" + rows);
  CHECK_FALSE(few.has_weights);
  CHECK(few.rows == 48);
  CHECK(few.faults.count == 1);
  CHECK(few.faults.first.line == 25);
  const SparseProfile most = ProfileOf(Repeat(5, "1:0.5 1:0.5 3:1\n0:2 2:1\n0 1:1\n"));
  CHECK(most.has_weights);
  CHECK_FALSE(most.may_lack_labels);
  CHECK(most.faults.count == 0);
  CHECK(ProfileOf(Repeat(5, "1:0.5 3:1\n2:1 3:2\n")).may_lack_labels);
}

}  // namespace
}  // namespace dtrain
