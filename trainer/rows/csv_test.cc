#include <doctest/doctest.h>
#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "trainer/input/csv_reader.h"
#include "trainer/input/data_test_util.h"
#include "trainer/rows/csv_table.h"
#include "trainer/rows/read_table.h"

namespace dtrain {
namespace {

using Records = std::vector<std::vector<std::string>>;

Records RecordsOf(const std::string& path, const CsvDialect& dialect = {}) {
  CsvReader reader(path, "data.train.path", dialect);
  Records records;
  while (reader.Next()) {
    records.emplace_back();
    for (const CsvField& field : reader.fields()) records.back().emplace_back(field.text);
  }
  return records;
}
Records Read(const std::string& content, const CsvDialect& dialect = {}) {
  return RecordsOf(WritePlain("t.csv", content), dialect);
}

// What separates the fields, as the first lines tell.
char DelimiterIn(const std::string& content, Decimal decimal = Decimal::kPoint) {
  CsvDialect dialect;
  dialect.decimal = decimal;
  return CsvReader(WritePlain("t.csv", content), "data.train.path", dialect).delimiter();
}

// What the reader says of `content`, after the file's name.
std::string Error(const std::string& content) {
  const std::string path = WritePlain("t.csv", content);
  const std::string error = UserErrorOf([&] { RecordsOf(path); });
  CHECK(error.substr(0, path.size()) == path);
  return error.substr(std::min(error.size(), path.size()));
}

// "line:column" of each field.
std::vector<std::string> Places(const std::string& content, const CsvDialect& dialect = {}) {
  CsvReader reader(WritePlain("t.csv", content), "data.train.path", dialect);
  std::vector<std::string> places;
  while (reader.Next()) {
    for (const CsvField& field : reader.fields()) {
      places.push_back(fmt::format("{}:{}", field.place.line, field.place.column));
    }
  }
  return places;
}

// Pieces: a text of a pipe that delivers so many bytes at once.
class Pieces : public PipeSource {
 public:
  Pieces(std::string text, size_t bytes) : text_(std::move(text)), bytes_(bytes) {}
  int64_t Read(char* out, int64_t size) override {
    const size_t count = text_.copy(out, std::min(bytes_, static_cast<size_t>(size)), at_);
    at_ += count;
    return static_cast<int64_t>(count);
  }

 private:
  const std::string text_;
  const size_t bytes_;
  size_t at_ = 0;
};

TEST_CASE("csv reader: lines may end with LF, CR LF or CR, the last also with nothing") {
  const Records expected = {{"a", "b"}, {"1", "2"}};
  for (const char* end : {"\n", "\r\n", "\r"}) {
    CAPTURE(end);
    const std::string content = std::string("a,b") + end + "1,2";
    CHECK(Read(content) == expected);
    CHECK(Read(content + end) == expected);
    CHECK(Read(content + end + end + end) == expected);
  }
}

TEST_CASE("csv reader: quotes hold commas, line ends, doubled quotes and blanks; empty fields count") {
  CHECK(Read("\"a,b\",\"c\nd\",\"e\"\"f\"\n") == Records{{"a,b", "c\nd", "e\"f"}});
  CHECK(Read("\"\",\"\"\"\"\r\n\"x\r\ny\"") == Records{{"", "\""}, {"x\r\ny"}});
  CHECK(Read("\"1\"") == Records{{"1"}});
  CHECK(Read(" 1 ,\t2, \" 3 \" ,a b \n") == Records{{"1", "2", " 3 ", "a b"}});
  CHECK(Read("1,,3\n,\n") == Records{{"1", "", "3"}, {"", ""}});
  CHECK(Read("1,") == Records{{"1", ""}});
}

TEST_CASE("csv reader: the first lines tell what separates the fields, and a comma is believed first") {
  const Records expected = {{"a", "b"}, {"1", "2"}};
  for (const char* content : {"a,b\n1,2\n", "a\tb\n1\t2\n", "a;b\n1;2\n", "a|b\n1|2", "a ; b\n 1 ;\t2"}) {
    CAPTURE(content);
    CHECK(Read(content) == expected);
  }
  CHECK(DelimiterIn("a;b\n1,5;2,5\n") == ';');
  CHECK(DelimiterIn("a,b\n1;5,2;5\n") == ',');
  CHECK(DelimiterIn("\"a;b\",c\n") == ',');
  CHECK(DelimiterIn("a\n1\n") == ',');
  CHECK(DelimiterIn("name\tnote\nx\tone, two\n") == '\t');
}

CsvDialect Of(Delimiter delimiter, Quotes quotes = Quotes::kDouble) {
  CsvDialect dialect;
  dialect.delimiter = delimiter;
  dialect.quotes = quotes;
  return dialect;
}

TEST_CASE("csv reader: a quote that does not begin its field is a character, and =\"..\" is a text") {
  CHECK(Read("6'2\" x,a\"\"b,5\"\n1,2,3\n") == Records{{"6'2\" x", "a\"\"b", "5\""}, {"1", "2", "3"}});
  CHECK(Read("=\"007\",=\"a,\"\"b\",=1\n") == Records{{"007", "a,\"b", "=1"}});
  CHECK(Places("=\"007\",x\n") == std::vector<std::string>{"1:1", "1:8"});
  CHECK(DelimiterIn("5\" a;b\n6\" a;c\n") == ';');
}

TEST_CASE(
    "csv reader: a backslash makes a character of a quote, a delimiter or a backslash, if data.quotes says "
    "so") {
  const CsvDialect backslash = Of(Delimiter::kComma, Quotes::kBackslash);
  CHECK(Read("\"n \\\"x\\\"\",2\n", backslash) == Records{{"n \"x\"", "2"}});
  CHECK(Read("a\\, b,c\\\\,\\N\n\"d\\\\\",\"e\"\"f\",\"g\nh\"\n", backslash) ==
        Records{{"a, b", "c\\", "\\N"}, {"d\\", "e\"f", "g\nh"}});
  CHECK(Read("a\\, b,c\\\n", Of(Delimiter::kComma)) == Records{{"a\\", "b", "c\\"}});
  std::string rows;
  for (int row = 0; row < 1000; ++row) rows += "\"x\\\"\",\\,y\n";
  CsvReader pieces(std::make_unique<InputBytes>(std::make_unique<Pieces>(rows, 7), "pipe"), backslash);
  int count = 0;
  for (; pieces.Next(); ++count) {
    REQUIRE(pieces.fields().size() == 2);
    CHECK(pieces.fields()[0].text == "x\"");
    CHECK(pieces.fields()[1].text == ",y");
  }
  CHECK(count == 1000);
}

TEST_CASE("csv reader: single quotes, or none, if data.quotes says so") {
  CHECK(Read("'a, b','it''s',\"x\n", Of(Delimiter::kComma, Quotes::kSingle)) ==
        Records{{"a, b", "it's", "\"x"}});
  CHECK(Read("\"a\tb \"c\"\n'd'\t\"\n", Of(Delimiter::kTab, Quotes::kNone)) ==
        Records{{"\"a", "b \"c\""}, {"'d'", "\""}});
}

TEST_CASE(
    "csv reader: any number of blanks and tabs, or byte 1, separates fields, if data.delimiter says so") {
  CHECK(Read(" 8.64   18\t-1 \"unit 0\" \n\n   \n7 6 5 u\t\n1 2 3 4", Of(Delimiter::kBlanks)) ==
        Records{{"8.64", "18", "-1", "unit 0"}, {"7", "6", "5", "u"}, {"1", "2", "3", "4"}});
  CHECK(Places(" a \t b\n", Of(Delimiter::kBlanks)) == std::vector<std::string>{"1:2", "1:6"});
  CHECK(Read("a\x01\x01 b\n", Of(Delimiter::kControlA)) == Records{{"a", "", "b"}});
  CHECK(DelimiterIn("a\x01"
                    "b,c\n1\x01"
                    "2\n") == '\x01');
  CHECK(Read("1~2\n", Of(Delimiter::kTilde)) == Records{{"1", "2"}});
}

TEST_CASE("csv reader: empty lines and lines of blanks are no records, wherever they stand") {
  for (const char* content : {"\r\na,b\n\n1,2\n", "  \n\t\na,b\n \n1,2\n\n  ", "\n\na,b\r\n \r\n1,2"}) {
    CAPTURE(content);
    CHECK(Read(content) == Records{{"a", "b"}, {"1", "2"}});
  }
  CHECK(Read("a\tb\n\t\n1\t2\n") == Records{{"a", "b"}, {"", ""}, {"1", "2"}});
  CHECK(Places("\n\na,b\n") == std::vector<std::string>{"3:1", "3:3"});
}

TEST_CASE("csv reader: a field is given as it is in the file, with the blanks that trim leaves out") {
  CsvDialect dialect;
  dialect.trim = true;
  CsvReader reader(WritePlain("t.csv", "\" id 0 \",x , \" \"\"a\"\" \",\"b\"\n"), "k", dialect);
  REQUIRE(reader.Next());
  std::vector<std::string> whole;
  for (const CsvField& field : reader.fields()) whole.emplace_back(reader.WholeText(field));
  CHECK(whole == std::vector<std::string>{" id 0 ", "x", " \"a\" ", "b"});
  CHECK(reader.fields()[2].text == "\"a\"");
}

TEST_CASE("csv reader: the rows behind a record are looked at, and it stays") {
  CsvReader reader(
      std::make_unique<InputBytes>(std::make_unique<Pieces>("\n\"a\"\"\",b\n\n1,2\n3,4\n", 2), "pipe"),
      Of(Delimiter::kComma));
  REQUIRE(reader.Next());
  const std::vector<CsvRecord> below = reader.PeekNext(9);
  REQUIRE(!below.empty());
  CHECK(below[0].fields[1].text == "2");
  CHECK(reader.fields()[0].text == "a\"");
  CHECK(reader.fields()[0].place.line == 2);
  REQUIRE(reader.Next());
  CHECK(reader.fields()[0].text == "1");
  REQUIRE(reader.Next());
  CHECK(reader.fields()[1].text == "4");
  CHECK(reader.PeekNext(9).empty());
}

TEST_CASE("csv reader: tabs separate fields and are no blanks then; commas are text") {
  CHECK(Read("a\t\tb,c\n", {Delimiter::kTab}) == Records{{"a", "", "b,c"}});
}

TEST_CASE("csv reader: lines at the front are left out, and places stay those of the file") {
  CsvDialect dialect;
  dialect.skip_lines = 2;
  const std::string content = "a;b, of\nno \"table\n1,2\n3,4\n";
  CHECK(Read(content, dialect) == Records{{"1", "2"}, {"3", "4"}});
  CHECK(Places(content, dialect)[1] == "3:3");
  dialect.skip_lines = 9;
  CHECK(Read("a,b\n", dialect).empty());
}

TEST_CASE("csv reader: a long first line may come from a pipe in pieces") {
  const std::string name(2 << 20, 'x');
  CsvReader reader(std::make_unique<InputBytes>(std::make_unique<Pieces>(name + ",y\n1,2\n", 256), "pipe"),
                   CsvDialect());
  CHECK(reader.delimiter() == ',');
  REQUIRE(reader.Next());
  CHECK(reader.fields()[0].text == name);
}

TEST_CASE("csv reader: a field with an open quote may come from a pipe in pieces") {
  std::string lines;
  while (lines.size() < 2 << 20) lines += "1,2\n";
  CsvReader reader(
      std::make_unique<InputBytes>(std::make_unique<Pieces>("a,\"" + lines + "\"\n3,4\n", 256), "pipe"),
      CsvDialect());
  REQUIRE(reader.Next());
  CHECK(reader.fields()[1].text == lines);
  REQUIRE(reader.Next());
  CHECK(reader.fields()[0].text == "3");
}

TEST_CASE("csv reader: comments are no rows, wherever they stand, and tell nothing of the delimiter") {
  CsvDialect dialect;
  dialect.comment = "#";
  const std::string content = "# a,b,c\n1;2\n#\n# \"x\n3;4\n#end";
  CHECK(Read(content, dialect) == Records{{"1", "2"}, {"3", "4"}});
  CHECK(Places(content, dialect)[2] == "5:1");
}

TEST_CASE("csv reader: trim leaves out blanks inside quotes, at the ends alone") {
  CsvDialect dialect;
  dialect.trim = true;
  const std::string content = "\" a b \", c ,\"\"\" \"\n";
  CHECK(Read(content, dialect) == Records{{"a b", "c", "\""}});
  CHECK(Read(content) == Records{{" a b ", "c", "\" "}});
}

TEST_CASE("csv reader: trim leaves out blanks inside quotes where blanks separate fields, too") {
  CsvDialect dialect;
  dialect.trim = true;
  dialect.delimiter = Delimiter::kBlanks;
  CHECK(Read("\" a b \"  c \"  \" d\n", dialect) == Records{{"a b", "c", "", "d"}});
}

// A lenient reader of `content`, whose fields are separated by commas.
struct LenientReader : CsvReader {
  explicit LenientReader(const std::string& content)
      : CsvReader(std::make_unique<InputBytes>(WritePlain("t.csv", content), "data.train.path"), Lenient()) {
    CsvDialect dialect;
    dialect.delimiter = Delimiter::kComma;
    Begin(dialect);
  }
};

TEST_CASE("csv reader: a lenient one counts faults of quotes and takes the text as it stands") {
  const auto check = [](const std::string& line, const std::vector<std::string>& texts, int64_t faults,
                        int64_t column) {
    CAPTURE(line);
    LenientReader reader("a,b\n" + line + "\nx,y\n");
    REQUIRE(reader.Next());
    CHECK(reader.record().quote_faults == 0);
    REQUIRE(reader.Next());
    REQUIRE(reader.fields().size() == texts.size());
    for (size_t i = 0; i < texts.size(); ++i) CHECK(reader.fields()[i].text == texts[i]);
    CHECK(reader.record().quote_faults == faults);
    CHECK(reader.record().quote_place.line == 2);
    CHECK(reader.record().quote_place.column == column);
    REQUIRE(reader.Next());
    CHECK(reader.fields()[1].text == "y");
    CHECK(reader.record().quote_faults == 0);
  };
  check("\"5\" disk,1", {"\"5\" disk", "1"}, 1, 5);
  check("1,\"open", {"1", "\"open"}, 1, 3);
}

TEST_CASE("csv reader: a lenient one counts empty lines between records, and rows may have any length") {
  LenientReader reader("\na,b\n\n\n1\n1,2,3\n\n");
  std::vector<size_t> sizes;
  while (reader.Next()) sizes.push_back(reader.fields().size());
  CHECK(sizes == std::vector<size_t>{2, 1, 3});
  CHECK(reader.empty_lines() == 3);
  CHECK(reader.empty_place().line == 1);
}

TEST_CASE("csv reader: a lenient one tells which fields had blanks at their ends") {
  LenientReader reader("a , b,\" c \",\"d\" ,\te\t,\n");
  REQUIRE(reader.Next());
  std::string trimmed;
  for (const CsvField& field : reader.fields()) trimmed += reader.IsTrimmed(field) ? 'x' : '-';
  CHECK(trimmed == "x-x-x-");
  CHECK(reader.fields()[2].text == "c");
}

TEST_CASE("csv reader: a look at the first records moves nothing, with any delimiter") {
  LenientReader reader("a;b\n\n\"c;d\";\"e\"\"f\"\ng,h\n");
  const std::vector<CsvRecord> semicolons = reader.Peek(';', Quotes::kDouble, 2),
                               blanks = reader.Peek(' ', Quotes::kDouble, 9);
  REQUIRE(semicolons.size() == 2);
  CHECK(semicolons[1].fields[0].text == "c;d");
  CHECK(semicolons[1].fields[1].text == "e\"f");
  CHECK(semicolons[1].begin().line == 3);
  CHECK(blanks.size() == 3);
  CHECK(reader.empty_lines() == 0);
  REQUIRE(reader.Next());
  CHECK(reader.fields()[0].text == "a;b");
  REQUIRE(reader.Next());
  REQUIRE(reader.Next());
  CHECK(reader.fields()[1].text == "h");
  CHECK(reader.empty_lines() == 1);
}

TEST_CASE("csv field: with a decimal comma 1,5 is a number and 1.5 is none, and commas separate nothing") {
  float number = 0;
  CHECK(ParseNumber("-1,5e3", Decimal::kComma, &number) == NumberText::kGood);
  CHECK(number == -1500);
  CHECK(ParseNumber("1.5", Decimal::kComma, &number) == NumberText::kNotANumber);
  CHECK(ParseNumber("1,5", Decimal::kPoint, &number) == NumberText::kNotANumber);
  CHECK(ParseNumber("1,2,3", Decimal::kComma, &number) == NumberText::kNotANumber);
  CHECK(DelimiterIn("1,5;2,5\n", Decimal::kComma) == ';');
  CHECK(DelimiterIn("1,5\t2,5\n", Decimal::kComma) == '\t');
  CHECK(DelimiterIn("1,5|2,5\n3|4\n", Decimal::kComma) == '|');
}

TEST_CASE("csv reader: after a fault it goes on with the next line") {
  CsvReader reader(WritePlain("t.csv", "a,b\n1,\"x\"x\n\n3,4\n"), "data.train.path");
  REQUIRE(reader.Next());
  CHECK_THROWS_AS(reader.Next(), UserError);
  reader.SkipFault();
  REQUIRE(reader.Next());
  CHECK(reader.fields()[0].text == "3");
  CHECK(reader.fields()[0].place.line == 4);
  CHECK_FALSE(reader.Next());
}

TEST_CASE("csv field: what stands for a missing value") {
  for (const char* text : {"", "?", "NA", "na", "N/A", "nan", "NaN", "NULL"}) CHECK(IsMissing(text));
  for (const char* text : {"0", "-", "none", "nano", "NA "}) CHECK_FALSE(IsMissing(text));
}

TEST_CASE("csv reader: gzip and a byte order mark change nothing") {
  const std::string content = "a,b\r\n1,2\r\n";
  CHECK(RecordsOf(WriteGzip("t.gz", content)) == Read(content));
  CHECK(Read("\xef\xbb\xbf" + content) == Read(content));
  CHECK(Read("\xef\xbb\xbf\"a\",b") == Records{{"a", "b"}});
  CHECK(Places("\xef\xbb\xbf"
               "a,b")[0] == "1:1");
  CHECK(Read("\xef\xbb\xbf").empty());
}

TEST_CASE("csv reader: a place is the physical line and the byte where the field begins") {
  CHECK(Places("a,bc\n1, 2\n") == std::vector<std::string>{"1:1", "1:3", "2:1", "2:4"});
  CHECK(Places("\"x\ny\",b\r\n1,2") == std::vector<std::string>{"1:1", "2:4", "3:1", "3:3"});
  CHECK(Places("\"x\r\ny\",b\r1,2") == std::vector<std::string>{"1:1", "2:4", "3:1", "3:3"});
}

TEST_CASE("csv reader: records across the blocks of a large file are whole, and so are their places") {
  const CounterRandom random(5);
  std::string content;
  Records expected;
  for (uint64_t row = 0; content.size() < 5000000; ++row) {
    const std::string text(random.Below(row, 3000), static_cast<char>('a' + row % 26));
    content += fmt::format("{},\"{}\"\"\r\n\",{}\r\n", row, text, row);
    expected.push_back({std::to_string(row), text + "\"\r\n", std::to_string(row)});
  }
  CHECK((Read(content) == expected));
  CHECK((RecordsOf(WriteGzip("t.gz", content)) == expected));
  CHECK(Places(content).back() == fmt::format("{}:3", 2 * expected.size()));
}

TEST_CASE("csv reader: a record longer than a block is read") {
  const std::string text(3500000, 'x');
  CHECK((Read("a,b\n" + text + ",\"" + text + "\"\n1,2\n") == Records{{"a", "b"}, {text, text}, {"1", "2"}}));
}

TEST_CASE("csv reader: the bytes of the records and of the content are told, of gzip about") {
  std::string content;
  for (int row = 0; row < 2000000; ++row) content += "1,2,3\n";
  CsvReader plain(WritePlain("t.csv", content), ""), zipped(WriteGzip("t.gz", content), "");
  for (CsvReader* reader : {&plain, &zipped}) {
    CHECK((reader->Next() && reader->Next()));
    CHECK(reader->mark().byte == 12);
  }
  CHECK(plain.content_bytes() == 12000000);
  CHECK(zipped.content_bytes() > 6000000);
  CHECK(zipped.content_bytes() < 24000000);
}

TEST_CASE("csv reader: what is no CSV is refused at its place") {
  CHECK(Error("a,b\n1,\"2\n3\n") ==
        ":2:3: a quote opens here and is not closed by the file's end. Close it; if quotes are characters of "
        "this file, set data.quotes to none.");
  CHECK(Error("\"a\"b,c\n") ==
        ":1:4: text after a closing quote; the next field or the line's end must follow. Double the quotes "
        "inside the field; if quotes are characters of this file, set data.quotes to none.");
  CHECK(
      Error("\"a \\\"b\\\"\",c\n") ==
      ":1:6: text after a closing quote, before which a backslash stands. If the backslash makes a character "
      "of the quote, set data.quotes to backslash.");
  CHECK(Error(std::string("\xff\xfe"
                          "a\0,\0b\0",
                          8)) == ":1:1: the text is UTF-16; it must be UTF-8. Save the file as CSV UTF-8.");
}

TEST_CASE("csv reader: a quote left open in a huge file ends before the memory does") {
  std::string content = "1,\"2\n";
  while (content.size() < 150 << 20) content.append(1 << 20, 'x');
  const std::string error = Error(content);
  CHECK(error.substr(0, 20) == ":1:1: a row of more ");
}

TEST_CASE("csv reader: a row is no longer than the limit, though its end is in the same block") {
  const std::string row((64 << 20) - 1, 'x');
  CHECK(Read(row + "\n1\n").size() == 2);
  CHECK(Error(row + "x\n1\n") ==
        ":1:1: a row of more than 67108863 bytes; is a quote left open in it? Close it.");
}

TEST_CASE("csv reader: fields are counted while they are read") {
  constexpr size_t kMostFields = 1 << 22;
  CHECK(Read("a\n" + std::string(kMostFields - 1, ',')).back().size() == kMostFields);
  CHECK(Error("a\n" + std::string(kMostFields, ',')) ==
        ":2:4194305: more than 4194304 fields in a row; is it a table? Give a file with fewer columns.");
}

float Number(const std::string& text) {
  float number = 0;
  CAPTURE(text);
  CHECK(ParseNumber(text, &number) == NumberText::kGood);
  return number;
}

TEST_CASE("csv number: the ways of writing a number, and what is too small for float32 is rounded") {
  const std::pair<std::string, float> numbers[] = {{"0", 0.0f},
                                                   {"5.1", 5.1f},
                                                   {"-.5", -0.5f},
                                                   {"+5.", 5.0f},
                                                   {"1e3", 1000.0f},
                                                   {"+1.5E-3", 1.5e-3f},
                                                   {"0007", 7.0f},
                                                   {"3.4028235e38", 3.4028235e38f},
                                                   {"-0", -0.0f},
                                                   {"1e-60", 0.0f},
                                                   {"1e-45", 1e-45f},
                                                   {"1e-50", 0.0f},
                                                   {"1e-400", 0.0f},
                                                   {"-1e-400", -0.0f},
                                                   {"+12.5E-99999999999999999999", 0.0f},
                                                   {"0." + std::string(500, '0') + "1", 0.0f},
                                                   {std::string(100, '0') + "1e-500", 0.0f},
                                                   {"0." + std::string(500, '0') + "1e501", 1.0f}};
  for (const auto& [text, number] : numbers) {
    CAPTURE(text);
    CHECK(Number(text) == number);
    CHECK(std::signbit(Number(text)) == std::signbit(number));
  }
}

TEST_CASE("csv number: halfway between two float32 the even one is taken, and beside it the nearer one") {
  // 2^24 + 1 and 2^24 + 3 are halfway; the digits behind are lost in double, or decide.
  CHECK(Number("16777217") == 16777216.0F);
  CHECK(Number("16777219") == 16777220.0F);
  CHECK(Number("16777217.000000001") == 16777218.0F);
  CHECK(Number("16777216.999999999") == 16777216.0F);
  CHECK(Number("1.0000000596046448") == 1.0000001F);  // above 1 + 2^-24
  CHECK(Number("1.0000000596046447") == 1.0F);        // below it
}

TEST_CASE("csv number: is the nearest float32, bit for bit") {
  const CounterRandom random(3);
  const auto check = [](const std::string& text) {
    const float expected = std::strtof(text.c_str(), nullptr);
    float got = 0;
    const bool good = ParseNumber(text, &got) == NumberText::kGood;
    if (!good || std::memcmp(&got, &expected, sizeof got) != 0) FAIL(text);
  };
  for (uint64_t i = 0; i < 200000; ++i) {
    const auto bits = static_cast<uint32_t>(random.Bits(i));
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    check(i % 2 == 0 ? fmt::format("{}", value) : fmt::format("{:.12g}", value));
    check(fmt::format("{:.{}f}", random.Uniform(i) * 1000 - 500, i % 8));
  }
  // Decimals of all lengths.
  for (uint64_t i = 0; i < 300000; ++i) {
    std::string text = random.Below(8 * i, 2) == 0 ? "-" : "";
    for (uint64_t digit = 0; digit < random.Below(8 * i + 1, 12); ++digit) {
      text += static_cast<char>('0' + random.Below(8 * i + digit % 7, 10));
    }
    text += '.';
    const uint64_t fraction = 1 + random.Below(8 * i + 2, 14);
    for (uint64_t digit = 0; digit < fraction; ++digit) {
      text += static_cast<char>('0' + random.Below((8 * i + digit) ^ 1, 10));
    }
    check(text);
  }
}

TEST_CASE("csv number: the whole text must be one finite number within float32") {
  const auto check = [](NumberText state, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      float number = 0;
      CAPTURE(text);
      CHECK(ParseNumber(text, &number) == state);
    }
  };
  check(NumberText::kNotANumber, {"abc", "1x", "1 2", "1.2.3", "0x10", "-", "+", ".", "e5", "1e", "+-1",
                                  "--1", "1,5", std::string("1\0", 2)});
  check(NumberText::kNotFinite, {"nan", "NaN", "-nan", "inf", "-INF", "infinity"});
  check(NumberText::kEmpty, {""});
  check(NumberText::kTooLarge, {"1e39", "-1e999", "1e99999999999999999999", std::string(500, '9'),
                                "0.0001e+50", "0." + std::string(50, '0') + "1e400"});
}

struct Reading {
  int64_t rows_at_end = 0;  // that there is memory for
  int64_t most = 0;         // copies included: the memory at any growth with that before it
  int times = 0;            // that memory was taken
};

// Reads rows of these lengths. `told`: how many bytes the content is said to have, for each that it has.
Reading ReadRows(const std::vector<int64_t>& lengths, double told = 1) {
  const auto content = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  CsvReserve reserve;
  Reading reading;
  int64_t bytes = 0;
  for (int64_t row = 0; row < static_cast<int64_t>(lengths.size()); ++row) {
    if (row == reading.rows_at_end) {
      const auto expected = static_cast<int64_t>(told * static_cast<double>(content));
      reading.rows_at_end = reserve.NextRows(row, bytes, expected);
      REQUIRE(reading.rows_at_end > row);
      reading.most = std::max(reading.most, row + reading.rows_at_end);
      ++reading.times;
    }
    bytes += lengths[static_cast<size_t>(row)];
  }
  return reading;
}

constexpr int64_t kRows = 100000;

void CheckClose(const Reading& reading) {
  CHECK(reading.rows_at_end >= kRows);
  CHECK(reading.rows_at_end < kRows * 9 / 8 + 2);
  CHECK(reading.times < 20);
}

TEST_CASE("csv reserve: rows of one length get what they need, and a copy of an eighth at most on the way") {
  const Reading reading = ReadRows(std::vector<int64_t>(kRows, 20));
  CheckClose(reading);
  CHECK(reading.rows_at_end < kRows * 65 / 64 + 2);
  CHECK(reading.most < kRows * 120 / 100);
  CHECK(ReadRows({1000000}).rows_at_end == 1);
}

TEST_CASE("csv reserve: a first row far shorter or longer than the others does not mislead") {
  std::vector<int64_t> longer(kRows, 500), shorter(kRows, 20);
  longer[0] = 4;
  shorter[0] = 100000;
  CheckClose(ReadRows(longer));
  CheckClose(ReadRows(shorter));
}

TEST_CASE("csv reserve: a change of length on the way is followed") {
  std::vector<int64_t> shorter(kRows, 200), longer(kRows, 20);
  std::fill(shorter.begin() + kRows / 10, shorter.end(), 20);
  std::fill(longer.begin() + kRows / 10, longer.end(), 200);
  for (const auto& lengths : {shorter, longer}) {
    const Reading reading = ReadRows(lengths);
    CHECK(reading.rows_at_end < 2 * kRows);
    CHECK(reading.times < 30);
  }
}

TEST_CASE("csv reserve: a content that is longer or shorter than told costs an eighth at a time") {
  const Reading longer = ReadRows(std::vector<int64_t>(kRows, 20), 0);
  CHECK(longer.rows_at_end < kRows * 9 / 8 + 2);
  CHECK(longer.times < 100);
  CHECK(ReadRows(std::vector<int64_t>(kRows, 20), 1000).rows_at_end <= 8 * kRows);
}

TEST_CASE("csv number: what has a byte that is no digit, wherever, is no number") {
  for (size_t size = 1; size <= 20; ++size) {
    for (size_t at = 0; at < size; ++at) {
      for (const char byte : {'/', ':', ' ', 'x', '\xb5', '.', '-'}) {
        std::string text(size, '7');
        text[std::min<size_t>(1, size - 1)] = '.';
        text[at] = byte;
        float number = 0;
        const char* const end = text.data() + text.size();
        const auto expected = std::from_chars(text.data(), end, number);
        CAPTURE(text);
        CHECK((ParseNumber(text, &number) == NumberText::kGood) ==
              (expected.ec == std::errc() && expected.ptr == end));
      }
    }
  }
}

TEST_CASE(
    "csv reader: records are the same with and without quotes, line ends and blocks wherever they fall") {
  for (size_t pad = 0; pad < 40; ++pad) {
    const std::string wide(pad, 'w');
    for (const char* end : {"\n", "\r\n", "\r"}) {
      const std::string plain = wide + ",b ,\t c," + end + "1,2,,4";
      const std::string quoted = "\"" + wide + "\",b ,\t c," + end + "1,\"2\",,4";
      CsvReader first(WritePlain("plain.csv", plain), "k"), second(WritePlain("quoted.csv", quoted), "k");
      for (int row = 0; row < 2; ++row) {
        REQUIRE(first.Next());
        REQUIRE(second.Next());
        REQUIRE(first.fields().size() == 4);
        REQUIRE(second.fields().size() == 4);
        for (size_t i = 0; i < 4; ++i) CHECK(first.fields()[i].text == second.fields()[i].text);
        CHECK(first.fields()[0].place.line == row + 1);
        CHECK(first.fields()[3].place.column == (row == 0 ? static_cast<int64_t>(pad) + 9 : 6));
        CHECK(first.record_end().column == (row == 0 ? static_cast<int64_t>(pad) + 9 : 7));
      }
      CHECK_FALSE(first.Next());
      CHECK(first.mark().byte == static_cast<int64_t>(plain.size()));
    }
  }
}

}  // namespace
}  // namespace dtrain
