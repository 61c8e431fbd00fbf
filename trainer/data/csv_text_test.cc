#include "trainer/data/csv_text.h"

#include <doctest/doctest.h>

#include "trainer/data/csv_test_util.h"
#include "trainer/data/source.h"

namespace dtrain {
namespace {

std::string Refusal(const std::string& place, const std::string& name) {
  return place + ": the name " + name +
         " is not UTF-8; names of columns and classes must be. Save the file as CSV UTF-8, or convert it: "
         "iconv "
         "-f latin1 -t utf-8 a.csv > b.csv.";
}

// From the file's name on.
std::string Error(const Config& config) {
  const std::string text = UserErrorOf([&] { LoadData(config); });
  return text.substr(text.rfind('/', text.find(".csv:")) + 1);
}
std::string Error(const std::string& content) { return Error(CsvConfig(ModelKind::kSoftmax, content, "y")); }

TEST_CASE("csv text: a column's name that is not UTF-8 is refused at its place, quoted or not") {
  CHECK(Error("a,caf\xe9,y\n1,2,0\n") == Refusal("train.csv:1:3", "caf\\xe9"));
  CHECK(Error("a,\"caf\xe9\",y\n1,2,0\n") == Refusal("train.csv:1:3", "caf\\xe9"));
  CHECK(Error("a,\xed\xa0\x80,y\n1,2,0\n") == Refusal("train.csv:1:3", "\\xed\\xa0\\x80"));
  CHECK(Error("a,caf\xc3\xa9,y\n1,2,0\n") == "");
}

TEST_CASE("csv text: a class that is not UTF-8 is refused in the first row that has it") {
  CHECK(Error("a,y\n1,oak\n2,oak\n3,ch\xeane\n") == Refusal("train.csv:4:3", "ch\\xeane"));
  CHECK(Error("a,y\n1,oak\n3,ch\xc3\xaane\n") == "");
}

TEST_CASE("csv text: a test file's names and classes are refused alike") {
  Config config = CsvConfig(ModelKind::kSoftmax, "a,y\n1,ch\xc3\xaane\n", "y");
  config.data.test = CsvSource("test.csv", "a,y\n1,ch\xeane\n", "y");
  CHECK(Error(config) == Refusal("test.csv:2:3", "ch\\xeane"));
  config.data.test = CsvSource("test.csv", "caf\xe9,y\n1,ch\xc3\xaane\n", "y");
  CHECK(Error(config) == Refusal("test.csv:1:1", "caf\\xe9"));
}

TEST_CASE("csv text: what stands in place of a number is refused as no number") {
  CHECK(Error("a,y\n\xe9,0\n").find("train.csv:2:1: a = \\xe9; must be a number.") == 0);
}

}  // namespace
}  // namespace dtrain
