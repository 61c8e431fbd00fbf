#include <doctest/doctest.h>
#include <sys/resource.h>

#include "trainer/env/assignment.h"
#include "trainer/env/env_test_util.h"

namespace dtrain {

namespace {

TEST_CASE("environment: values keep their equals signs, and what has none is left out") {
  const char* const variables[] = {"A=1", "B=x=y", "nothing", "C=", nullptr};
  CHECK(EnvironmentOf(variables) == Environment{{"A", "1"}, {"B", "x=y"}, {"C", ""}});
}

TEST_CASE("environment: the first name that is set counts, and empty is not set") {
  const Environment environment = {{"A", ""}, {"B", "2"}, {"C", "3"}};
  REQUIRE(FindVariable(environment, {"A", "B", "C"}) != nullptr);
  CHECK(FindVariable(environment, {"A", "B", "C"})->first == "B");
  CHECK(FindVariable(environment, {"A", "D"}) == nullptr);
}

TEST_CASE("environment: a number is whole, or an error that names its variable") {
  CHECK(FindNumber({{"N", "17"}}, {"N"}) == 17);
  CHECK_FALSE(FindNumber({}, {"N"}).has_value());
  for (const char* bad : {"-1", "1x", " 1", "1.0", "99999999999"}) {
    CAPTURE(bad);
    const std::string text = ErrorOf([&] { FindNumber({{"N", bad}}, {"N"}); });
    CHECK(text.find("N = ") == 0);
    CHECK(Contains(text, "must be a whole number"));
  }
}

using Hosts = std::vector<std::string>;

Hosts Expand(const std::string& text) { return ExpandHostList("LIST", text); }

TEST_CASE("host list: plain names, one or several") {
  CHECK(Expand("login") == Hosts{"login"});
  CHECK(Expand("b,a,c.example") == Hosts{"b", "a", "c.example"});
}

TEST_CASE("host list: brackets have numbers and ranges, in their order") {
  CHECK(Expand("nodes[006,011]") == Hosts{"nodes006", "nodes011"});
  CHECK(Expand("n[1-3]") == Hosts{"n1", "n2", "n3"});
  CHECK(Expand("n[7,1-2]") == Hosts{"n7", "n1", "n2"});
  CHECK(Expand("127.0.0.[2-3]") == Hosts{"127.0.0.2", "127.0.0.3"});
}

TEST_CASE("host list: leading zeros stay, and a range may grow beyond its width") {
  CHECK(Expand("n[08-11]") == Hosts{"n08", "n09", "n10", "n11"});
  CHECK(Expand("n[9-10]") == Hosts{"n9", "n10"});
  CHECK(Expand("n[098-101]") == Hosts{"n098", "n099", "n100", "n101"});
}

TEST_CASE("host list: several groups, and names that go on behind a bracket") {
  CHECK(Expand("a[1-3,07-09]b") == Hosts{"a1b", "a2b", "a3b", "a07b", "a08b", "a09b"});
  CHECK(Expand("a[1,3],login,b[2-3]-ib") == Hosts{"a1", "a3", "login", "b2-ib", "b3-ib"});
  CHECK(Expand("r[0-1]n[1-2]") == Hosts{"r0n1", "r0n2", "r1n1", "r1n2"});
}

TEST_CASE("host list: what is none is refused with its variable") {
  for (const char* bad :
       {"", ",", "a,", "a[", "a[1", "a]", "a[1]]", "a[[1]]", "a[]", "a[1-]", "a[x]", "a[3-1]", "a[1,]",
        "a[-1]", "a[0-99999999999]", "a[0-999]b[0-999]", "a[1-999999999999999999999]"}) {
    CAPTURE(bad);
    CHECK(ErrorOf([&] { Expand(bad); }).find("LIST = ") == 0);
  }
}

TEST_CASE("host list: hosts are counted while they grow, and no name is longer than names are") {
  std::string ranges = "1-65536";
  for (int i = 0; i < 200; ++i) ranges += ",1-65536";
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  CHECK(Contains(ErrorOf([&] { Expand("n[" + ranges + "]"); }), "too many hosts"));
  getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 64 << 10);  // in KiB
  CHECK(Expand("n[1-65536]").size() == 65536);
  CHECK(Contains(ErrorOf([&] { Expand("a,n[1-65536]"); }), "too many hosts"));
  const std::string name(253, 'n');
  CHECK(Expand(name) == Hosts{name});
  CHECK(Contains(ErrorOf([&] { Expand(name + "[1-2]"); }), "a name of more than 253 characters"));
}

TEST_CASE("counts: the tasks together are counted while they grow") {
  CHECK(ExpandCounts("N", "65536").size() == 1);
  for (const char* bad : {"1(x65537)", "65536,1", "2(x32769)", "65536(x65536)", "0(x65537)"}) {
    CAPTURE(bad);
    CHECK(Contains(ErrorOf([&] { ExpandCounts("N", bad); }), "too many tasks"));
  }
}

TEST_CASE("counts: repeated and single ones") {
  using Counts = std::vector<int>;
  CHECK(ExpandCounts("N", "3") == Counts{3});
  CHECK(ExpandCounts("N", "2(x3),1") == Counts{2, 2, 2, 1});
  CHECK(ExpandCounts("N", "1,2(x2)") == Counts{1, 2, 2});
  for (const char* bad :
       {"", "2(x", "2(x3", "(x3)", "2x3", "a", "1,,2", "2(x-1)", "1(x99999999)", "99999999"}) {
    CAPTURE(bad);
    CHECK(ErrorOf([&] { ExpandCounts("N", bad); }).find("N = ") == 0);
  }
}

}  // namespace

}  // namespace dtrain
