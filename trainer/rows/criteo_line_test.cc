// Lines of Criteo's click logs as rows of 39 hashed features.
#include "trainer/rows/criteo_line.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "trainer/rows/hashed_feature.h"

namespace dtrain {
namespace {

DataConfig ConfigOf(int64_t bits = 40) {
  DataConfig data;
  data.train.format = DataFormat::kCriteo;
  data.hash_bits = bits;
  return data;
}

// A line with these fields; those behind are empty, up to 40.
std::string LineOf(std::vector<std::string> fields, size_t count = 40) {
  fields.resize(count);
  std::string line = fields[0];
  for (size_t i = 1; i < count; ++i) line += "\t" + fields[i];
  return line;
}

SparseLine RowOf(const std::string& line, const DataConfig& data = ConfigOf()) {
  SparseLine row;
  std::optional<LineFault> fault;
  CHECK(MakeCriteoParser(data, std::nullopt)->Parse(line, &row, &fault));
  CHECK_MESSAGE(!fault, (fault ? fault->rule : ""));
  return row;
}

std::string FaultOf(const std::string& line, std::optional<int64_t> inputs = std::nullopt) {
  SparseLine row;
  std::optional<LineFault> fault;
  CHECK_FALSE(MakeCriteoParser(ConfigOf(), inputs)->Parse(line, &row, &fault));
  return fault ? std::to_string(fault->at) + ": " + fault->rule : "";
}

uint64_t Number(const std::string& column, const std::string& text) {
  return HashedColumn(column, 40).NumberOf(text);
}

// The feature of I2 with this text.
uint64_t OfI2(const std::string& text) { return RowOf(LineOf({"1", "", text})).ids[1]; }

TEST_CASE("hashed columns: numbers are the low bits of XXH3-64 and differ by column") {
  CHECK(HashedColumn("", 64).NumberOf("") != HashedColumn("C1", 64).NumberOf(""));
  const HashedColumn whole("C1", 64);
  for (const int64_t bits : {1, 18, 63}) {
    CHECK(HashedColumn("C1", bits).NumberOf("68fd1e64") == (whole.NumberOf("68fd1e64") & LowBits(bits)));
  }
  CHECK(Number("C1", "a") != Number("C2", "a"));
  // By Python's xxhash.
  CHECK(whole.NumberOf("68fd1e64") == 13509463285594505790u);
}

TEST_CASE("criteo: a row has a label and one feature of each column, with value 1") {
  const std::string line =
      LineOf({"1", "1", "-1", "300", "", "", "", "", "", "", "", "", "", "", "68fd1e64"});
  const SparseLine row = RowOf(line);
  CHECK(row.label == "1");
  CHECK(row.weight == 1);
  REQUIRE(row.ids.size() == 39);
  CHECK(row.values == std::vector<float>(39, 1));
  CHECK(row.ids[0] == Number("I1", "1"));
  CHECK(row.ids[1] == Number("I2", "-1"));
  CHECK(row.ids[2] == Number("I3", ">32"));
  CHECK(row.ids[3] == Number("I4", ""));
  CHECK(row.ids[13] == Number("C1", "68fd1e64"));
  CHECK(row.ids[38] == Number("C26", ""));
  CHECK(std::set<uint64_t>(row.ids.begin(), row.ids.end()).size() == 39);
}

TEST_CASE(
    "criteo: numbers above 2 share the feature of their bucket, floor(log(x)^2), and others have their own") {
  CHECK(OfI2("3") == Number("I2", ">1"));
  CHECK(OfI2("4") == Number("I2", ">1"));
  CHECK(OfI2("5") == Number("I2", ">2"));
  CHECK(OfI2("1") == Number("I2", "1"));
  CHECK(OfI2("2") == Number("I2", "2"));
  CHECK(OfI2("0") == Number("I2", "0"));
  CHECK(OfI2("-3") == Number("I2", "-3"));
  CHECK(OfI2("0003") == OfI2("3"));
  CHECK(OfI2("4095") == Number("I2", ">69"));
  CHECK(OfI2("4096") == Number("I2", ">69"));
  CHECK(OfI2("1000000") == Number("I2", ">190"));
  CHECK(OfI2("9223372036854775807") == Number("I2", ">1906"));
}

TEST_CASE("criteo: data.hash_bits says how many low bits of a number count, 18 if it is unset") {
  const std::string line = LineOf({"0", "5"});
  DataConfig data = ConfigOf();
  data.hash_bits.reset();
  const SparseLine whole = RowOf(line), low = RowOf(line, data);
  for (size_t i = 0; i < 39; ++i) CHECK(low.ids[i] == (whole.ids[i] & LowBits(18)));
}

TEST_CASE("criteo: a line without its label field, or with an empty one, has no label") {
  CHECK(RowOf(LineOf({"", "5"})).label.empty());
  const SparseLine row = RowOf(LineOf({"5"}, 39));
  CHECK(row.label.empty());
  CHECK(row.ids == RowOf(LineOf({"", "5"})).ids);
}

TEST_CASE("criteo: an empty line is no row") { CHECK(FaultOf("") == ""); }

TEST_CASE("criteo: a fault tells its byte in the line, the rule and a remedy") {
  CHECK(FaultOf("1\t2\t3").find(
            "5: a row has 3 fields; it must have a label, 13 numbers and 26 categories") == 0);
  CHECK(FaultOf(LineOf({"1"}, 41)).find("41: a row has more than 40 fields;") == 0);
  CHECK(FaultOf(LineOf({"1"}, 400)).find("41: a row has more than 40 fields;") == 0);
  CHECK(FaultOf(LineOf({"1", "", "x"})) == "3: I2 must be a whole number. Correct it, or remove the row.");
  for (const char* text : {"1.0", " 1", "+1", "1e3", "9223372036854775808", "-"}) {
    CHECK(FaultOf(LineOf({"1", text})).find("2: I1 must be a whole number") == 0);
  }
  CHECK(FaultOf(LineOf({"1", "5"}), 1).find("2: the feature's hash ") == 0);
}

TEST_CASE("criteo: keys of a hash table have their column in the first bits") {
  DataConfig data = ConfigOf();
  data.hash_bits.reset();
  data.by_column = data.whole_keys = true;
  const SparseLine row =
      RowOf(LineOf({"1", "0", "", "", "", "", "", "", "", "", "", "", "", "", "68fd1e64"}), data);
  REQUIRE(*HashBits(data) == 58);
  for (uint64_t i = 0; i < 13; ++i) CHECK(row.ids[i] == (uint64_t{26} << 58) + i);
  for (uint64_t i = 0; i < 26; ++i) CHECK((row.ids[13 + i] >> 58) == i);
  CHECK(row.ids[13] == (13509463285594505790u & LowBits(58)));
}

TEST_CASE("criteo: with columns apart a category has features of its column alone, and a number is itself") {
  DataConfig data = ConfigOf(10);
  data.by_column = true;
  const std::string line =
      LineOf({"1", "0", "-3", "5000", "", "7", "", "", "", "", "", "", "", "", "68fd1e64"});
  const SparseLine row = RowOf(line, data);
  REQUIRE(row.ids.size() == 39);
  for (uint64_t i = 0; i < 13; ++i) CHECK(row.ids[i] == (26 << 10) + i);
  for (uint64_t i = 0; i < 26; ++i) CHECK((row.ids[13 + i] >> 10) == i);
  CHECK((row.ids[13] & 1023) == (Number("C1", "68fd1e64") & 1023));
  CHECK(row.values[0] == 0);
  CHECK(row.values[1] == -std::log1p(3.0f));
  CHECK(row.values[2] == std::log1p(5000.0f));
  CHECK(row.values[3] == 0);  // missing
  CHECK(row.values[4] == std::log1p(7.0f));
  CHECK(row.values[13] == 1);
  data.numbers = NumberScale::kPlain;
  const SparseLine plain = RowOf(line, data);
  CHECK(plain.ids == row.ids);
  CHECK(plain.values[1] == -3);
  CHECK(plain.values[2] == 5000);
  SparseLine bad;
  std::optional<LineFault> fault;
  CHECK_FALSE(MakeCriteoParser(data, std::nullopt)->Parse(LineOf({"1", "x"}), &bad, &fault));
  CHECK(fault->rule == "I1 must be a whole number. Correct it, or remove the row.");
}

}  // namespace
}  // namespace dtrain
