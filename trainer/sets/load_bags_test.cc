// Bags (data.bags): columns of several texts, from CSV and from TFRecord, as a run reads them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "base/tfrecord.h"
#include "trainer/config/config.h"
#include "trainer/rows/example_fields.h"
#include "trainer/rows/hashed_feature.h"
#include "trainer/sets/sets_test_util.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

using namespace std::string_literals;

constexpr int64_t kBits = 20;

Config Bags(DataFormat format, const std::string& content, const std::vector<std::string>& bags) {
  Config config = SparseConfig(format, ModelKind::kLogistic, content);
  config.data.train.label = "y";
  config.data.bags = bags;
  config.data.hash_bits = kBits;
  return config;
}

Config CsvBags(const std::string& content, const std::vector<std::string>& bags) {
  return Bags(DataFormat::kCsv, content, bags);
}

std::string Id(const std::string& column, const std::string& text = "") {
  return fmt::format("{}", HashedColumn(column, kBits).NumberOf(text));
}

// A row of these texts of the column "b", each with its value.
std::string Row(int label, const std::vector<std::pair<std::string, std::string>>& texts) {
  std::string row = fmt::format("{}:", label);
  for (const auto& [text, value] : texts) row += fmt::format(" {}={}", Id("b", text), value);
  return row;
}

std::vector<std::string> RowsOfCsv(const std::string& content, const std::vector<std::string>& bags,
                                   Delimiter separator = Delimiter::kSemicolon) {
  Config config = CsvBags("b,y\n" + content, bags);
  config.data.bag_separator = separator;
  return EpochOf(config);
}

TEST_CASE("bags: each text of a field is a feature, with its weight if it has one") {
  const std::vector<std::string> rows = {Row(1, {{"a", "1"}, {"b", "1"}, {"c", "1"}}),
                                         Row(0, {{"a", "0.5"}, {"b", "2"}}), ""};
  CHECK(RowsOfCsv("a;b;c,1\na:0.5;b:2,0\n", {"b"}) == rows);
  CHECK(RowsOfCsv(" a ; b;c ,1\na :.5 ; b:+2,0\n", {"b"}) == rows);
  CHECK(RowsOfCsv("a|b|c,1\na:0.5|b:2,0\n", {"b"}, Delimiter::kBar) == rows);
  CHECK(RowsOfCsv("\"a,b,c\",1\n\"a:0.5,b:2\",0\n", {"b"}, Delimiter::kComma) == rows);
  CHECK(RowsOfCsv("  a b   c,1\na:0.5 b:2,0\n", {"0"}, Delimiter::kBlanks) == rows);
  // What comes twice counts twice, and a weight may be any number.
  CHECK(RowsOfCsv("a;a,1\na:-1;b:0;c,0\n", {"b"}) ==
        std::vector<std::string>{Row(1, {{"a", "1"}, {"a", "1"}}),
                                 Row(0, {{"a", "-1"}, {"b", "0"}, {"c", "1"}}), ""});
  CHECK(RowsOfCsv("http://a;12:30,1\nb,0\n", {"b=none"}) ==
        std::vector<std::string>{Row(1, {{"http://a", "1"}, {"12:30", "1"}}), Row(0, {{"b", "1"}}), ""});
}

TEST_CASE("bags: a column may have the weights, and is then no feature") {
  const std::string content = "w,b,y\n0.5;2,a;b:1,1\n3,c,0\n,,1\n";
  CHECK(EpochOf(CsvBags(content, {"b=w"})) ==
        std::vector<std::string>{Row(1, {{"a", "0.5"}, {"b:1", "2"}}), Row(0, {{"c", "3"}}), "1:", ""});
  const auto error = [](const std::string& row) { return LoadError(CsvBags("w,b,y\n" + row, {"b=w"})); };
  CHECK(Has(error("1,a;b,1\n"), ":2:1: w has 1 value; must have 2, as many as b has texts (data.bags)."));
  CHECK(Has(error("1;2;3,,1\n"), ":2:1: w has 3 values; must have 0, as many as b has texts"));
  CHECK(Has(error("1;x,a;b,1\n"), ":2:1: w has \"x\"; a weight must be a finite number."));
  CHECK(Has(error("1;inf,a;b,1\n"), ":2:1: w has \"inf\"; a weight must be a finite number."));
  Config config = CsvBags("w,b,y\n1;2,a;b,1\n1,,0\n", {"b=w"});
  config.data.missing = MissingValues::kDrop;
  CHECK(EpochOf(config) == std::vector<std::string>{Row(1, {{"a", "1"}, {"b", "2"}}), ""});
  // Numbers are plain there, also where those of the table are written otherwise.
  config = CsvBags("w,b,y\n1.234,a,1\n1.234;1.234,a;b,0\n", {"b=w"});
  config.data.number_format = {"1.234,5"};
  CHECK(EpochOf(config) ==
        std::vector<std::string>{Row(1, {{"a", "1.234"}}), Row(0, {{"a", "1.234"}, {"b", "1.234"}}), ""});
}

TEST_CASE("bags: what separates their texts is not taken for the delimiter, unless nothing else is one") {
  Config config = CsvBags("a;b0|1\na;b1|0\n", {"0"});
  config.data.train.header = false;
  config.data.train.label = "1";
  CHECK(EpochOf(config).size() == 3);
  config = CsvBags("b,y\n\"a,b\",1\n\"a,c\",0\n", {"b"});
  config.data.bag_separator = Delimiter::kComma;
  CHECK(EpochOf(config)[0] == Row(1, {{"a", "1"}, {"b", "1"}}));
}

TEST_CASE("bags: classes are counted in the rows that a run takes") {
  for (const BadRows bad : {BadRows::kStop, BadRows::kSkip}) {
    for (const MissingValues missing : {MissingValues::kError, MissingValues::kDrop}) {
      std::string csv = "b,h,w,y\n", records;
      for (int row = 0; row < 6; ++row) {
        csv += fmt::format("a;b,text,1;2,c{}\n", row % 3);
        ExampleWriter example;
        example.AddTexts("b", {"a", "b"});
        example.AddTexts("h", {"text"});
        example.AddFloats("w", {1, 2});
        example.AddTexts("y", {fmt::format("c{}", row % 3)});
        AppendTfrecord(example.Take(), &records);
      }
      for (const bool is_csv : {true, false}) {
        Config config =
            Bags(is_csv ? DataFormat::kCsv : DataFormat::kTfrecord, is_csv ? csv : records, {"b=w"});
        config.model.kind = ModelKind::kSoftmax;
        config.data.hash = {"h"};
        config.data.bad_rows = bad;
        config.data.missing = missing;
        CHECK(PeekShape(config).classes == 3);
      }
    }
  }
}

TEST_CASE("bags: an empty field has no feature, and data.missing: drop leaves its row out") {
  Config config = CsvBags("b,y\n,1\nNA,0\na,1\n-,1\n", {"b"});
  config.data.missing_values = {"b=-"};
  CHECK(SortedRows(EpochOf(config)) == std::vector<std::string>{"0:", "1:", "1:", Row(1, {{"a", "1"}})});
  config.data.missing = MissingValues::kDrop;
  CHECK(EpochOf(config) == std::vector<std::string>{Row(1, {{"a", "1"}}), ""});
}

TEST_CASE("bags: what is no list of texts is an error with its place, and such a row can be left out") {
  const auto error = [](const std::string& bag) {
    return LoadError(CsvBags("b,y\na,1\n" + bag + ",0\n", {"b"}));
  };
  for (const char* const bag : {"a;;b", "a;", ";a", ":2", "a;:1"})
    CHECK(Has(error(bag), ":3:1: b has an empty text; must have texts between its separators"));
  for (const char* const bag : {"12:x", "a:", "a:nan", "a:1e39", "b;http://a"}) {
    CAPTURE(bag);
    CHECK(Has(error(bag), ":3:1: b has \""));
    CHECK(Has(error(bag), "\"; a weight must be a finite number behind the colon (data.bags: COLUMN=none"));
  }
  Config config = CsvBags("b,y\na,1\na:x,0\nb,0\n", {"b"});
  config.data.bad_rows = BadRows::kSkip;
  CHECK(EpochOf(config) == std::vector<std::string>{Row(1, {{"a", "1"}}), Row(0, {{"b", "1"}}), ""});
}

TEST_CASE("bags: a column has one use") {
  const auto error = [](const std::vector<std::string>& bags, const std::vector<std::string>& hash) {
    Config config = CsvBags("b,c,d,y\na,1,1,0\n", bags);
    config.data.hash = hash;
    return LoadError(config);
  };
  CHECK(Has(error({"b"}, {"b"}), "b is in data.hash and data.bags; it is one of them. Take it out."));
  CHECK(Has(error({"b=c"}, {"c"}), "c is in data.hash and the weights of data.bags; it is one of them."));
  CHECK(Has(error({"b=c", "c"}, {}), "c is in data.bags and the weights of data.bags; it is one of them."));
  CHECK(Has(error({"y"}, {}), "y is in data.bags and the label; it is one of them."));
  CHECK(Has(error({"b=no"}, {}), "no column \"no\" (data.bags)"));
}

// The same rows with bags of texts and of whole numbers, one with weights, as CSV and TFRecord.
struct Both {
  explicit Both(int rows) {
    const CounterRandom random(7);
    csv = "ids,n,tags,words,ws,y\n";
    uint64_t drawn = 0;
    for (int row = 0; row < rows; ++row) {
      const int64_t label = static_cast<int64_t>(random.Bits(drawn++) % 2);
      std::vector<int64_t> ids;
      std::vector<std::string> texts;
      std::vector<float> weights;
      for (uint64_t left = random.Bits(drawn++) % 5; left > 0; --left)
        ids.push_back(static_cast<int64_t>(random.Bits(drawn++) % 50) - 10);
      for (uint64_t left = random.Bits(drawn++) % 4; left > 0; --left) {
        texts.push_back(fmt::format("tag {}", random.Bits(drawn++) % 9));
        weights.push_back(static_cast<float>(random.Normal(drawn++)));
      }
      csv += fmt::format("{},{},{},{},{},{}\n", fmt::join(ids, ";"), row, fmt::join(texts, ";"),
                         fmt::join(texts, ";"), fmt::join(weights, ";"), label);
      ExampleWriter example;
      example.AddInts("y", {label});
      example.AddInts("n", {row});
      if (row % 2 == 0 || !ids.empty()) example.AddInts("ids", ids);  // an empty list, or none
      const std::vector<std::string_view> views(texts.begin(), texts.end());
      for (const char* const key : {"tags", "words"}) example.AddTexts(key, views);
      example.AddFloats("ws", weights);
      AppendTfrecord(example.Take(), &records);
    }
  }
  std::string csv, records;
};

TEST_CASE(
    "bags: lists of TFRecord give the rows of a table, in memory, from files and caches, and by threads") {
  const Both both(5000);
  for (const ModelKind kind : {ModelKind::kLogistic, ModelKind::kWideDeep}) {
    Config csv = CsvBags(both.csv, {"ids", "tags", "words=ws"});
    csv.data.train.path = {WritePlain("a.csv", both.csv)};
    Config records = Bags(DataFormat::kTfrecord, both.records, {"ids", "tags", "words=ws"});
    for (Config* const config : {&csv, &records}) {
      config->model.kind = kind;
      config->model.head = ModelHead::kLogistic;
      config->data.by_column = kind == ModelKind::kWideDeep;
      config->model.columns = 3;
      config->model.column_bits = kBits;
      config->data.threads = 1;
      if (config->data.by_column) config->model.inputs = (3 << kBits) + 1;
    }
    const std::vector<std::string> expected = EpochOf(csv);
    CHECK(expected.size() > 5000);
    for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
      CAPTURE(static_cast<int>(cache));
      for (Config* const config : {&csv, &records}) {
        SetCache(cache, config);
        for (const int64_t threads : {1, 3}) {
          config->data.threads = threads;
          CHECK((EpochOf(*config) == expected));
        }
      }
    }
  }
}

TEST_CASE("bags: packed numbers of one byte each come in one order from files and from a cache") {
  const CounterRandom random(3);
  std::string content;
  for (int row = 0; row < 3000; ++row) {
    ExampleWriter example;
    example.AddInts("y", {row % 2});
    std::vector<int64_t> numbers;
    for (int i = 0; i < 150; ++i)
      numbers.push_back(static_cast<int64_t>(random.Bits(static_cast<uint64_t>(row * 150 + i)) % 100));
    example.AddInts("b", numbers);
    AppendTfrecord(example.Take(), &content);
  }
  Config config = Bags(DataFormat::kTfrecord, content, {"b"});
  config.data.shuffle = true;
  config.data.shuffle_rows = 500;
  std::vector<std::string> epochs[2];
  for (const bool cached : {false, true}) {
    SetCache(cached ? DataCache::kFile : DataCache::kNone, &config);
    epochs[cached] = EpochOf(config);
  }
  CHECK((epochs[0] == epochs[1]));
}

TEST_CASE("bags: an absent list of TFRecord is missing, and an empty one has no texts") {
  std::string content;
  for (const int with : {0, 1, 2}) {
    ExampleWriter example;
    example.AddInts("y", {with % 2});
    if (with == 1) example.AddTexts("b", {});
    if (with == 2) example.AddTexts("b", {"a:1;b", ""});
    AppendTfrecord(example.Take(), &content);
  }
  Config config = Bags(DataFormat::kTfrecord, content, {"b"});
  const std::string last = Row(0, {{"a:1;b", "1"}, {"", "1"}});
  CHECK(EpochOf(config) == std::vector<std::string>{"0:", "1:", last, ""});
  config.data.missing = MissingValues::kDrop;
  CHECK(EpochOf(config) == std::vector<std::string>{"1:", last, ""});
}

TEST_CASE("bags: a list of another kind, or with other weights, is a fault of its record") {
  const auto error = [](bool ints, const std::vector<float>& weights) {
    std::string content;
    for (const bool odd : {false, true}) {
      ExampleWriter example;
      example.AddInts("y", {1});
      odd&& ints ? example.AddInts("b", {1, 2}) : example.AddTexts("b", {"x", "y"});
      example.AddFloats("w", odd ? weights : std::vector<float>{1, 2});
      AppendTfrecord(example.Take(), &content);
    }
    return LoadError(Bags(DataFormat::kTfrecord, content, {"b=w"}));
  };
  CHECK(error(false, {3, 4}).empty());
  // A Feature without a kind says nothing of the kind.
  std::string content;
  for (int row = 0; row < 30; ++row) {
    ExampleWriter example;
    example.AddInts("y", {1});
    row < 29 ? example.AddTexts("b", {"x"}) : example.AddInts("b", {1});
    std::string record = example.Take();
    if (row == 28)
      record =
          "\x0a\x0c\x0a\x0a\x0a\x01y\x12\x05\x1a\x03\x0a\x01\x01\x0a\x07\x0a\x05\x0a\x01"
          "b\x12\x00"s;
    AppendTfrecord(record, &content);
  }
  CHECK(
      Has(LoadError(Bags(DataFormat::kTfrecord, content, {"b"})), "is an int64_list; must be a bytes_list"));
  CHECK(Has(error(true, {3, 4}), "record 2 at byte"));
  CHECK(Has(error(true, {3, 4}), "the feature \"b\" is an int64_list; must be a bytes_list"));
  CHECK(Has(error(false, {3}), "record 2 at byte"));
  CHECK(Has(error(false, {3}), "w has 1 value; must have 2, as many as b has texts (data.bags)."));
  CHECK(Has(error(false, {3, NAN}), "w has \"nan\"; a weight must be a finite number."));
}

}  // namespace
}  // namespace dtrain
