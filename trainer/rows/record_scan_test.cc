#include "trainer/rows/record_scan.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "trainer/input/data_test_util.h"
#include "trainer/rows/pass.h"

namespace dtrain {
namespace {

std::string TextOf(const RecordBlock& block) {
  return fmt::format("{}:{}+{}@{}:{} ", block.file, block.first_row, block.bytes, block.begin.byte,
                     block.begin.line);
}

std::string Scanned(const RowFiles& files, std::string* rows = nullptr) {
  RecordScan scan(files, [&](std::string_view text) {
    if (rows != nullptr) *rows += text;
  });
  std::string blocks;
  for (RecordBlock block; scan.Next(&block);) blocks += TextOf(block);
  return blocks + fmt::format("{} rows", scan.rows());
}

// The same blocks, where each row is parsed.
std::string Parsed(const DataConfig& data, const RowFiles& files) {
  SourceInputs inputs(data.train.path, "data.train.path");
  Pass pass(data, files.context(), &inputs);
  BlockCuts cuts;
  std::vector<RecordBlock> blocks;
  ParsedRows row;
  for (TextMark begin; pass.Next(&row, nullptr); begin = pass.rows().mark(), row.Clear()) {
    if (pass.begins_file()) {
      cuts.NextFile();
      begin = pass.file_begin();
    }
    if (cuts.Begins(row.feature_bytes())) {
      blocks.push_back({pass.count() - 1, static_cast<int64_t>(pass.file()), begin, 0, 1});
    }
    blocks.back().bytes = pass.rows().mark().byte - blocks.back().begin.byte;
  }
  std::string text;
  for (const RecordBlock& block : blocks) text += TextOf(block);
  return text + fmt::format("{} rows", pass.count());
}

DataConfig DataOf(DataFormat format, const std::vector<std::string>& contents) {
  DataConfig data;
  data.train.format = format;
  data.train.label = format == DataFormat::kCsv ? "y" : "";
  data.hash_bits = 20;
  for (const std::string& content : contents) {
    data.train.path.push_back(WritePlain(fmt::format("scan{}.txt", data.train.path.size()), content));
  }
  return data;
}

// Checks that a scan finds the blocks that parsing finds. Returns them.
std::string CheckScan(const DataConfig& data, int64_t inputs = 0) {
  const RowFiles files(data, {}, inputs);
  std::string blocks = Scanned(files);
  CHECK(blocks == Parsed(data, files));
  return blocks;
}

std::string Repeated(int64_t count, const std::string& text) {
  std::string all;
  for (int64_t i = 0; i < count; ++i) all += text;
  return all;
}

TEST_CASE("record scan: the records of tables, whatever ends them and is in them") {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    CAPTURE(end);
    const std::string head = "a,y" + end, row = "1.5,0" + end;
    CHECK(CheckScan(DataOf(DataFormat::kCsv, {head + row + "2,1"})).find("2 rows") != std::string::npos);
    CheckScan(DataOf(DataFormat::kCsv, {"\xef\xbb\xbf" + head + Repeated(3000, row) + end + end}));
    CheckScan(DataOf(DataFormat::kCsv, {head + Repeated(1024, row), head, head + Repeated(1025, row)}));
    CheckScan(DataOf(DataFormat::kCsv, {head + Repeated(700, "\"1\",\"0\"" + end + " 2 ,1" + end)}));
    DataConfig hashed =
        DataOf(DataFormat::kCsv, {"t,a,y" + end + Repeated(1500, "\"a " + end + "\"\"b, \",2,1" + end)});
    hashed.hash = {"t"};
    CheckScan(hashed);
    DataConfig bare = DataOf(DataFormat::kCsv, {Repeated(2000, "#" + end + row), end + end + row});
    bare.train.header = false;
    bare.train.label = "1";
    bare.skip_lines = 2;
    bare.comment = "#";
    CheckScan(bare);
  }
}

TEST_CASE("record scan: the lines of sparse rows, without those that are none") {
  const std::string more = Repeated(3000, "1 |a 5 w:0.5 |b x\n\n  \n0 |\n") + "1 | 7";
  CHECK(CheckScan(DataOf(DataFormat::kVw, {more, more})).find("12002 rows") != std::string::npos);
  CHECK(
      CheckScan(DataOf(DataFormat::kLibsvm, {"# none\n\n" + Repeated(2000, "1 2:1 3:0.5 # a b c\r\n \t\n")}))
          .find("2000 rows") != std::string::npos);
  CheckScan(DataOf(DataFormat::kCriteo, {Repeated(1100, "1" + std::string(39, '\t') + "\n\n")}));
}

TEST_CASE("record scan: rows of many features end a block as early as when they are parsed") {
  std::string wide = "1", zeros = "1", vw = "1 |a";
  for (int i = 1; i <= 400; ++i) {
    wide += fmt::format(" {}:1", i);
    zeros += fmt::format(" {}:0", i);
    vw += fmt::format(" {}", i);
  }
  const std::string lines = Repeated(700, wide + "\n1 1:1\n" + zeros + "\n");
  const DataConfig libsvm = DataOf(DataFormat::kLibsvm, {lines, lines});
  CHECK(CheckScan(libsvm, 401) != CheckScan(libsvm));
  DataConfig crossed = DataOf(DataFormat::kVw, {Repeated(300, vw + "\n1 |b 1\n")});
  CheckScan(crossed);
  crossed.crosses = {"aa"};
  CheckScan(crossed);
  std::string head = "y", row = "1";
  for (int i = 0; i < 600; ++i) {
    head += fmt::format(",c{}", i);
    row += ",7";
  }
  CHECK(CheckScan(DataOf(DataFormat::kCsv, {head + "\n" + Repeated(1000, row + "\n")})).find("0:436+") !=
        std::string::npos);
}

TEST_CASE("record scan: the texts of all rows are visited once, with blocks that are parsed") {
  const std::string lines = Repeated(20, "1 |a" + Repeated(3000, " x") + "\n") + "0 |b y";
  DataConfig data = DataOf(DataFormat::kVw, {lines, lines + "\n"});
  data.crosses = {"bb"};
  const RowFiles files(data, {}, 0);
  std::string rows;
  Scanned(files, &rows);
  CHECK(rows == lines + lines + "\n");
}

TEST_CASE("record scan: the header again is no row, as where rows are parsed") {
  for (const char* again : {"a,y\n", "\"a\",y\r\n", " a , \"y\"\n"}) {
    CAPTURE(again);
    const DataConfig data = DataOf(DataFormat::kCsv, {std::string("a,y\n1,0\n") + again + again + "2,1\n",
                                                      std::string("a,y\n") + again + "3,1\n"});
    const RowFiles files(data, {}, 0);
    std::string rows;
    CHECK(Scanned(files, &rows).find("3 rows") != std::string::npos);
    CHECK(rows == "1,0\n2,1\n3,1\n");
  }
}

TEST_CASE("record scan: a fault of quotes is told at its place") {
  const auto fault = [](const std::string& text) {
    const DataConfig data = DataOf(DataFormat::kCsv, {text});
    const RowFiles files(data, {}, 0);
    return UserErrorOf([&] { Scanned(files); });
  };
  CHECK(fault("a,y\n1,0\n\"5\"x,0\n").find("scan0.txt:3:4: text after a closing") != std::string::npos);
  CHECK(fault("a,y\n1,0\n\"1,0\n").find("scan0.txt:3:1: a quote opens here") != std::string::npos);
}

}  // namespace
}  // namespace dtrain
