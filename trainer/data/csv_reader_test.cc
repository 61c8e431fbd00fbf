#include "trainer/data/csv_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "trainer/data/idx_test_util.h"

namespace dtrain {
namespace {

using Records = std::vector<std::vector<std::string>>;

Records RecordsOf(const std::string& path) {
  CsvReader reader(path, "data.train.path");
  Records records;
  while (reader.Next()) {
    records.emplace_back();
    for (const CsvField& field : reader.fields()) records.back().emplace_back(field.text);
  }
  return records;
}
Records Read(const std::string& content) { return RecordsOf(WritePlain("t.csv", content)); }

// What the reader says of `content`, after the file's name.
std::string Error(const std::string& content) {
  const std::string path = WritePlain("t.csv", content);
  const std::string error = UserErrorOf([&] { RecordsOf(path); });
  CHECK(error.substr(0, path.size()) == path);
  return error.substr(std::min(error.size(), path.size()));
}

// "line:column" of each field.
std::vector<std::string> Places(const std::string& content) {
  CsvReader reader(WritePlain("t.csv", content), "data.train.path");
  std::vector<std::string> places;
  while (reader.Next()) {
    for (const CsvField& field : reader.fields()) {
      places.push_back(fmt::format("{}:{}", field.place.line, field.place.column));
    }
  }
  return places;
}

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

TEST_CASE("csv reader: quoted fields hold commas, line ends and doubled quotes") {
  CHECK(Read("\"a,b\",\"c\nd\",\"e\"\"f\"\n") == Records{{"a,b", "c\nd", "e\"f"}});
  CHECK(Read("\"\",\"\"\"\"\r\n\"x\r\ny\"") == Records{{"", "\""}, {"x\r\ny"}});
  CHECK(Read("\"1\"") == Records{{"1"}});
}

TEST_CASE("csv reader: blanks around a field are left out, blanks inside quotes are not") {
  CHECK(Read(" 1 ,\t2, \" 3 \" ,a b \n") == Records{{"1", "2", " 3 ", "a b"}});
}

TEST_CASE("csv reader: empty fields count") {
  CHECK(Read("1,,3\n,\n") == Records{{"1", "", "3"}, {"", ""}});
  CHECK(Read("1,") == Records{{"1", ""}});
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
    CHECK(reader->record_bytes() == 12);
  }
  CHECK(plain.content_bytes() == 12000000);
  CHECK(zipped.content_bytes() > 6000000);
  CHECK(zipped.content_bytes() < 24000000);
}

TEST_CASE("csv reader: what is no CSV is refused at its place") {
  CHECK(Error("a,b\n1,\"2\n3\n") ==
        ":2:3: a quote opens here and is not closed by the file's end. Close it.");
  CHECK(Error("a,b\n1,2\"\n") ==
        ":2:4: a quote inside a field; it must stand around the whole field. Quote the field and double the "
        "quotes inside: \"5\"\" disk\".");
  CHECK(Error("\"a\"b,c\n") ==
        ":1:4: text after a closing quote; a comma or the line's end must follow. Double the quotes inside "
        "the field.");
  CHECK(Error("a,b\n\n1,2\n") == ":2:1: an empty line; only the end of the file may have them. Remove it.");
  CHECK(Error("\r\n1,2\n") == ":1:1: an empty line; only the end of the file may have them. Remove it.");
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

}  // namespace
}  // namespace dtrain
