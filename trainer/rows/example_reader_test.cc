#include "trainer/rows/example_reader.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/tfrecord.h"
#include "trainer/input/data_test_util.h"

namespace dtrain {
namespace {

using namespace std::string_literals;
using Texts = std::vector<std::string>;

std::string Framed(const std::vector<std::string>& examples) {
  std::string content;
  for (const std::string& example : examples) AppendTfrecord(example, &content);
  return content;
}

std::unique_ptr<InputBytes> Input(const std::string& content, const std::string& name = "a.tfrecord") {
  auto file = std::make_unique<InputBytes>(WritePlain(name, content), "data.train.path");
  file->BeginsRecords(true);
  return file;
}

// The names, and then the texts of each record; what stops the reading is the last one.
std::vector<Texts> Read(const std::string& content, const ExampleRules& rules = {}, bool looks = true) {
  std::vector<Texts> records;
  try {
    ExampleReader reader(Input(content), rules);
    while (true) {
      try {
        if (!reader.Next()) break;
      } catch (const RowFault& fault) {
        records.push_back({fault.what()});
        reader.SkipFault();
        continue;
      }
      Texts& texts = records.emplace_back();
      for (const CsvField& field : reader.fields()) texts.emplace_back(field.text);
      if (looks && records.size() == 1) {
        for (size_t i = 0; i < texts.size(); ++i) reader.Take(static_cast<int64_t>(i), false);
      }
    }
  } catch (const UserError& error) {
    records.push_back({error.what()});
  }
  for (Texts& record : records) {
    const size_t at = record[0].find("a.tfrecord");
    if (at != std::string::npos) record[0] = record[0].substr(at);
  }
  return records;
}

// The same of one file of Examples.
std::vector<Texts> ReadExamples(const std::vector<std::string>& examples, const ExampleRules& rules = {}) {
  return Read(Framed(examples), rules);
}

std::string Ints(const std::string& key, const std::vector<int64_t>& values) {
  ExampleWriter writer;
  writer.AddInts(key, values);
  return writer.Take();
}

// An Example whose feature `a` has a Feature of these bytes.
std::string WithFeature(const std::string& feature) {
  const auto size = [](const std::string& text) { return static_cast<char>(text.size()); };
  const std::string entry = "\x0a\x01\x61\x12"s + size(feature) + feature;
  const std::string map = "\x0a"s + size(entry) + entry;
  return "\x0a"s + size(map) + map;
}

const Texts kA = {"a"};
const std::string kOne = Ints("a", {1});
const std::string kRecord = Framed({kOne});
const auto kSize = static_cast<int64_t>(kRecord.size());

std::string Packed(const std::string& content, int window_bits) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string packed(content.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}
std::string Gzip(const std::string& content) { return Packed(content, 15 + 16); }
std::string Zlib(const std::string& content) { return Packed(content, 15); }

TEST_CASE("tfrecord: the bytes of an Example are those that TensorFlow writes") {
  CHECK(kOne == "\x0a\x0c\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x01"s);
  ExampleWriter writer;
  writer.AddInts("a", {1, -1});
  writer.AddFloats("b", {1.5f});
  writer.AddTexts("c", {"x"});
  CHECK(ReadExamples({writer.Take()}) ==
        std::vector<Texts>{{"a[0]", "a[1]", "b", "c"}, {"1", "-1", "1.5", "x"}});
}

TEST_CASE("tfrecord: packed files are told by their bytes, and joined members of gzip have all records") {
  const std::string three = kRecord + kRecord + kRecord;
  const std::vector<Texts> rows = {kA, {"1"}, {"1"}, {"1"}};
  CHECK(Read(three) == rows);
  CHECK(Read(Gzip(three)) == rows);
  CHECK(Read(Zlib(three)) == rows);
  CHECK(Read(Gzip(three) + Gzip(three)).size() == 7);
  const std::string twice = Zlib(three) + Zlib(three);
  CHECK(Read(twice).back()[0].find(fmt::format("byte {}: a zlib stream ends here", twice.size() / 2)) !=
        std::string::npos);
  for (const std::string& packed : {Gzip(three), Zlib(three)}) {
    CHECK(Read(packed.substr(0, packed.size() - 4)).back()[0].find("unexpected end of file") !=
          std::string::npos);
    CHECK(Read(packed + "8 of junk").back()[0].find("ends here") != std::string::npos);
  }
}

TEST_CASE("tfrecord: a length that looks like the mark of a packing is one") {
  for (const std::string mark : {"\x1f\x8b\x08", "\x78\x9c", "\x78\x01"}) {
    size_t length = 0;
    for (size_t i = mark.size(); i-- > 0;) length = length * 256 + static_cast<unsigned char>(mark[i]);
    ExampleWriter writer;
    writer.AddTexts("a", {std::string(length - 30, 'x')});
    std::string example = writer.Take();
    REQUIRE(example.size() < length);
    writer.AddTexts("a", {std::string(length - 30 + (length - example.size()), 'x')});
    example = writer.Take();
    const std::string content = Framed({example, kOne});
    REQUIRE(content.substr(0, mark.size()) == mark);
    CHECK(Read(content).size() == 3);
  }
}

TEST_CASE("tfrecord: a record of no bytes is an Example without features") {
  CHECK(ReadExamples({kOne, ""}) == std::vector<Texts>{kA, {"1"}, {""}});
  CHECK(ReadExamples({""})[0][0].find("a.tfrecord, record 1 at byte 0: no feature; ") == 0);
}

TEST_CASE("tfrecord: a file that is cut, or changed at a byte, is refused there, behind the records before") {
  const std::string three = kRecord + kRecord + kRecord;
  const std::vector<Texts> all = Read(three);
  for (int64_t cut = 1; cut < 3 * kSize; ++cut) {
    CAPTURE(cut);
    const int64_t size = 3 * kSize - cut, whole = size / kSize;
    std::vector<Texts> rows = Read(three.substr(0, static_cast<size_t>(size)));
    const auto names = static_cast<size_t>(whole > 0 ? 1 : 0);  // the first record has them
    if (size % kSize == 0) {
      CHECK(rows.size() == static_cast<size_t>(whole) + 1);
      continue;
    }
    const std::string fault = rows.back()[0];
    rows.pop_back();
    CHECK(rows.size() == static_cast<size_t>(whole) + names);
    CHECK(std::equal(rows.begin(), rows.end(), all.begin()));
    CHECK(fault.find(fmt::format("a.tfrecord, record {} at byte {}: the file ends within the record. ",
                                 whole + 1, whole * kSize)) == 0);
  }
  for (int64_t byte = 0; byte < 3 * kSize; ++byte) {
    CAPTURE(byte);
    std::string changed = three;
    changed[static_cast<size_t>(byte)] ^= 0x41;
    const int64_t record = byte / kSize, in_record = byte % kSize;
    const int64_t place = record * kSize + (in_record < 12 ? 0 : 12);
    std::vector<Texts> rows = Read(changed);
    CHECK(rows.back()[0].find(
              fmt::format("a.tfrecord, record {} at byte {}: the file is ", record + 1, place)) == 0);
    CHECK(rows.size() == static_cast<size_t>(record > 0 ? record + 2 : 1));
  }
}

TEST_CASE("tfrecord: numbers of a list may be packed, one by one, in pieces or both, and all count") {
  const std::vector<Texts> two = {{"a[0]", "a[1]"}, {"1", "2"}};
  const auto ints = [](const std::string& list) {
    return WithFeature("\x1a"s + static_cast<char>(list.size()) + list);
  };
  CHECK(ReadExamples({ints("\x0a\x02\x01\x02"s)}) == two);
  CHECK(ReadExamples({ints("\x08\x01\x08\x02"s)}) == two);
  CHECK(ReadExamples({ints("\x0a\x01\x01\x0a\x01\x02"s)}) == two);
  CHECK(ReadExamples({ints("\x0a\x01\x01\x08\x02"s)}) == two);
  CHECK(ReadExamples({ints("\x08\x01\x0a\x01\x02"s)}) == two);
  CHECK(ReadExamples({ints("\x10\x07\x08\x01\x08\x02"s)}) == two);  // an unknown field in front
  CHECK(ReadExamples({WithFeature("\x12\x05\x0d\0\0\xc0\x3f"s)})[1] == Texts{"1.5"});
  const std::string place = "a.tfrecord, record 1 at byte 0: ";
  CHECK(ReadExamples({WithFeature("\x12\x08\x0a\x06\0\0\xc0\x3f\0\0"s)})[1][0].find(
            place + "the list of the feature \"a\" is damaged") == 0);
  CHECK(ReadExamples({WithFeature("\x1a\x02\x08\x01\x1a\x02\x08\x02"s)})[0][0].find(
            place + "a Feature has two lists") == 0);
}

TEST_CASE(
    "tfrecord: a Feature without a kind and a key that is not there are missing, an empty list is not") {
  const std::string none = WithFeature(""), empty = WithFeature("\x1a\0"s);
  CHECK(ReadExamples({kOne, none, "", kOne}) == std::vector<Texts>{kA, {"1"}, {""}, {""}, {"1"}});
  CHECK(ReadExamples({kOne, empty})[2][0] ==
        fmt::format(
            "a.tfrecord, record 2 at byte {}: the feature \"a\" has 0 values; must have 1, as in most of the "
            "first records. Set data.missing to what becomes of it, or remove the row.",
            kSize));
  ExampleRules rules;
  rules.empty_is_gap = true;
  CHECK(ReadExamples({kOne, empty}, rules)[2] == Texts{""});
}

TEST_CASE("tfrecord: of a key that comes twice the last value counts, also where Examples are joined") {
  ExampleWriter writer;
  writer.AddInts("a", {1});
  writer.AddInts("b", {7});
  writer.AddInts("a", {2});
  const std::string twice = writer.Take();
  CHECK(ReadExamples({twice}) == std::vector<Texts>{{"a", "b"}, {"2", "7"}});
  CHECK(ReadExamples({kOne + Ints("b", {7}) + Ints("a", {2})})[1] == Texts{"2", "7"});
  CHECK(ReadExamples({kOne + WithFeature("")})[1] == Texts{""});
  writer.AddFloats("a", {5});
  const std::string number = writer.Take();
  writer.AddFloats("a", {NAN});
  ExampleReader reader(Input(Framed({number + writer.Take()})), {});
  reader.Next();
  reader.Take(0, true);
  REQUIRE(reader.Next());
  CHECK_FALSE(reader.fields()[0].is_number);
}

TEST_CASE("tfrecord: another kind or length than that of the first records is a fault of its row alone") {
  ExampleWriter writer;
  writer.AddFloats("a", {1.0f});
  const std::vector<Texts> rows = ReadExamples({kOne, writer.Take(), kOne, Ints("a", {1, 2}), kOne});
  REQUIRE(rows.size() == 6);
  CHECK(rows[2][0] ==
        fmt::format("a.tfrecord, record 2 at byte {}: the feature \"a\" is a float_list; must be "
                    "an int64_list, as in most of the first records. Write the record anew.",
                    kSize));
  // The first records say that lengths differ.
  CHECK(rows[1][0].find("the feature \"a\" has lists of different lengths") != std::string::npos);
}

TEST_CASE("tfrecord: what most of the first records have is the rule, also for the first one") {
  ExampleWriter writer;
  writer.AddFloats("a", {1.0f});
  std::vector<std::string> examples(12, kOne);
  examples[0] = writer.Take();
  examples[5] = Ints("a", {1, 2});
  const std::vector<Texts> rows = ReadExamples(examples);
  REQUIRE(rows.size() == 13);
  CHECK(rows[1][0].find("record 1 at byte 0: the feature \"a\" is a float_list; must be an int64_list") !=
        std::string::npos);
  CHECK(rows[6][0].find("record 6 at byte") != std::string::npos);
  CHECK(rows[6][0].find("the feature \"a\" has 2 values; must have 1, as in most of the first records.") !=
        std::string::npos);
  CHECK(std::count(rows.begin(), rows.end(), Texts{"1"}) == 10);
}

TEST_CASE("tfrecord: a SequenceExample is refused by its name, and other bytes are no Example") {
  const std::string sequence = "\x12\x02\x0a\0"s;
  CHECK(ReadExamples({kOne, sequence})[2][0].find("a tf.train.SequenceExample, whose feature_lists") !=
        std::string::npos);
  CHECK(ReadExamples({kOne, "abc"})[2][0].find("the data is no tf.train.Example") != std::string::npos);
  CHECK(ReadExamples({kOne, "\x1a\x01\x07"s + kOne})[2] == Texts{"1"});  // an unknown field
  CHECK(ReadExamples({kOne, "\x0a\x05\x0a\x03\x0a\x01\x61"s})[2][0].find("no key or no value") !=
        std::string::npos);
}

TEST_CASE("tfrecord: a cut or changed Example with a right checksum is a fault or an Example, never more") {
  ExampleWriter writer;
  writer.AddInts("a", {1, 300});
  writer.AddTexts("b", {"text"});
  writer.AddFloats("c", {0.5f});
  const std::string example = writer.Take();
  for (size_t size = 0; size < example.size(); ++size)
    CHECK(ReadExamples({example, example.substr(0, size)}).size() == 3);
  for (size_t bit = 0; bit < 8 * example.size(); ++bit) {
    std::string changed = example;
    changed[bit / 8] ^= static_cast<char>(1 << bit % 8);
    CHECK(ReadExamples({example, changed}).size() == 3);
  }
}

TEST_CASE("tfrecord: columns are in the order of names and of the numbers in them, whatever that of a map") {
  ExampleWriter writer;
  for (const char* key : {"x10", "x2", "C1", "I2", "label"}) writer.AddInts(key, {1});
  const std::string first = writer.Take();
  for (const char* key : {"label", "I2", "C1", "x2", "x10"}) writer.AddInts(key, {key[1]});
  const std::vector<Texts> rows = ReadExamples({first, writer.Take(), first});
  CHECK(rows[0] == Texts{"C1", "I2", "label", "x2", "x10"});
  CHECK(rows[2] == Texts{"49", "50", "97", "50", "49"});
  CHECK(rows[3] == Texts(5, "1"));
}

TEST_CASE("tfrecord: values and names of all lengths are read, whatever stands behind them") {
  Texts names = {""}, texts = {"0"};
  for (size_t size = 1; size < 150; ++size)
    names.push_back(std::string(size, 'a') + std::to_string(size % 10));
  for (int64_t power = 1; power <= INT64_MAX / 12; power *= 2)
    for (const int64_t value : {power - 1, power, power * 10, -power}) texts.push_back(std::to_string(value));
  std::vector<std::string> examples;
  ExampleWriter writer;
  for (const std::string& text : texts) {
    for (const std::string& name : names) writer.AddInts(name, {std::stoll(text)});
    writer.AddTexts("t", {text});
    examples.push_back(writer.Take());
  }
  std::vector<Texts> rows = ReadExamples(examples);
  rows.erase(rows.begin());
  REQUIRE(rows.size() == texts.size());
  for (size_t i = 0; i < texts.size(); ++i) CHECK(rows[i] == Texts(names.size() + 1, texts[i]));
}

TEST_CASE("tfrecord: a feature that no first record has is a fault where all are needed, and else left out") {
  const std::string other = kOne + Ints("z", {3});
  std::vector<std::string> many(1000, kOne);
  many.push_back(other);
  CHECK(ReadExamples(many).back() == Texts{"1"});
  ExampleRules rules;
  rules.all_known = true;
  CHECK(ReadExamples(many, rules).back()[0].find("the feature \"z\" is in none of the first records") !=
        std::string::npos);
  rules.names = {"z", "y[1]"};
  CHECK(ReadExamples(many, rules)[0] == Texts{"a", "y[0]", "y[1]", "z"});
  CHECK(ReadExamples(many, rules).back() == Texts{"1", "", "", "3"});
}

TEST_CASE("tfrecord: numbers have the shortest text that is read as them, and are numbers where asked for") {
  ExampleWriter writer;
  writer.AddFloats("a", {5.0f});
  std::vector<std::string> examples = {writer.Take()};
  for (const float value : {-0.0f, 0.1f, 1e-10f, 3.4e38f, 16777215.0f, -7.0f, NAN, INFINITY}) {
    writer.AddFloats("a", {value});
    examples.push_back(writer.Take());
  }
  const Texts texts = {"5", "-0", "0.1", "1e-10", "3.4e+38", "16777215", "-7", "nan", "inf"};
  std::vector<Texts> rows = ReadExamples(examples);
  rows.erase(rows.begin());
  for (size_t i = 0; i < texts.size(); ++i) CHECK(rows[i] == Texts{texts[i]});
  ExampleReader reader(Input(Framed(examples)), {});
  reader.Next();
  reader.Take(0, true);
  for (const std::string& text : texts) {
    REQUIRE(reader.Next());
    const CsvField& field = reader.fields()[0];
    CHECK(field.is_number == (text != "nan" && text != "inf"));
    float number = 0, parsed = 0;
    CHECK(ParseNumber(field, Decimal::kPoint, &number) == ParseNumber(text, &parsed));
    if (field.is_number) CHECK(std::signbit(number) == std::signbit(parsed));
    if (field.is_number) CHECK(number == parsed);
  }
}

}  // namespace
}  // namespace dtrain
