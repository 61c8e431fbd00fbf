#include "trainer/input/text_reader.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/input/data_test_util.h"

namespace dtrain {
namespace {

LineReader Open(const std::string& path) {
  return LineReader(std::make_unique<InputBytes>(path, "data.train.path"));
}

std::vector<std::string> LinesOf(const std::string& path) {
  LineReader reader = Open(path);
  std::vector<std::string> lines;
  while (reader.Next()) {
    lines.emplace_back(reader.line());
    CHECK(reader.number() == static_cast<int64_t>(lines.size()));
  }
  return lines;
}

TEST_CASE("lines: end with LF or CR LF, and the last may lack its end") {
  CHECK(LinesOf(WritePlain("a", "one\ntwo\r\n\n\r\nfive")) ==
        std::vector<std::string>{"one", "two", "", "", "five"});
  CHECK(LinesOf(WritePlain("a", "one\n")) == std::vector<std::string>{"one"});
  CHECK(LinesOf(WritePlain("a", "\xef\xbb\xbfone\rtwo")) == std::vector<std::string>{"one\rtwo"});
}

TEST_CASE("lines: what is no text is told, also where its first bytes were looked at before") {
  for (const bool is_looked_at : {false, true}) {
    auto file = std::make_unique<InputBytes>(WritePlain("a.bz2", "BZh91AY&SY..."), "data.train.path");
    if (is_looked_at) CHECK(file->ContinuesWith("B"));
    CHECK_THROWS_WITH_AS(LineReader(std::move(file)), doctest::Contains("is packed with bzip2"), UserError);
  }
}

TEST_CASE("lines: longer than a block are whole, and of packed files the same") {
  std::string content;
  std::vector<std::string> lines;
  for (int i = 0; i < 30; ++i) {
    lines.emplace_back(static_cast<size_t>(i * 37 % 7 == 0 ? 2'500'000 + i : 50'000 + i), 'a' + i % 26);
    content += lines.back() + "\n";
  }
  CHECK((LinesOf(WritePlain("a", content)) == lines));
  CHECK((LinesOf(WriteGzip("a.gz", content)) == lines));
  CHECK((LinesOf(WriteZstd("a.zst", content)) == lines));
}

TEST_CASE("lines: a mark is a place to go to, ahead and back") {
  std::string content;
  for (int i = 0; i < 400'000; ++i) content += std::to_string(i) + "\n";
  LineReader reader = Open(WritePlain("a", content));
  std::vector<TextMark> marks;
  while (marks.push_back(reader.mark()), reader.Next()) {
  }
  for (const int line : {399'999, 0, 200'000, 200'001, 7, 390'000}) {
    reader.GoTo(marks[static_cast<size_t>(line)], line % 2 == 0 ? 0 : 100);
    REQUIRE(reader.Next());
    CHECK(reader.line() == std::to_string(line));
    CHECK(reader.number() == line + 1);
  }
}

TEST_CASE("lines: one that no memory should hold is told") {
  const std::string path = WritePlain("a", "short\n" + std::string((64 << 20) + 1, 'x'));
  LineReader reader = Open(path);
  REQUIRE(reader.Next());
  CHECK(
      UserErrorOf([&] { reader.Next(); }) ==
      path +
          ":2:1: a row of more than 67108863 bytes; is it a text of rows? Give one with a row on each line.");
}

}  // namespace
}  // namespace dtrain
