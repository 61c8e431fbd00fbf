#include "trainer/data/files/decoders.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.h"
#include "trainer/data/files/data_test_util.h"

namespace dtrain {
namespace {

std::string Gzip(const std::string& content) { return ReadBack(WriteGzip("member.gz", content)); }

// Bytes that take several fills of the input, and are the same each time.
std::string Noise(size_t size) {
  const CounterRandom random(3);
  std::string content;
  for (uint64_t i = 0; i < size; ++i) content += static_cast<char>(random.Below(i, 200));
  return content;
}

// The content of `file`, which comes in pieces of `piece` bytes, read by calls for `size` bytes.
std::string Content(const std::string& file, int64_t piece = 1 << 20, int64_t size = 1 << 20) {
  size_t at = 0;
  GzipFile gzip("f.gz", [&](char* out, int64_t most) {
    const size_t count = file.copy(out, static_cast<size_t>(std::min(piece, most)), at);
    at += count;
    return static_cast<int64_t>(count);
  });
  std::string content, part(static_cast<size_t>(size), '\0');
  while (const int64_t got = gzip.Read(part.data(), size)) {
    content.append(part, 0, static_cast<size_t>(got));
  }
  CHECK(gzip.Read(part.data(), size) == 0);
  CHECK(gzip.offset() == static_cast<int64_t>(file.size()));
  return content;
}

std::string Error(const std::string& file) {
  return UserErrorOf([&] { Content(file); });
}

std::string RestError(size_t member_end) {
  return fmt::format(
      "f.gz: byte {}: a gzip member ends here, and what follows is neither another one nor zeros up to the "
      "file's end. Fetch the file anew, or cut off what follows if it is no data: head -c {}.",
      member_end, member_end);
}

std::string Damaged(const std::string& why, int64_t after = 0) {
  return fmt::format("f.gz: cannot be read after byte {} of its content: {}. Fetch the file anew.", after,
                     why);
}

TEST_CASE("gzip file: the content of all members is read, in any sizes") {
  const std::string first = "a,b\n1,2\n", last = Noise(2000);
  const std::string file = Gzip(first) + Gzip("") + Gzip(last);
  for (const int64_t piece : {1, 7, 1 << 20}) {
    for (const int64_t size : {1, 3, 1 << 20}) {
      CAPTURE(piece);
      CAPTURE(size);
      CHECK((Content(file, piece, size) == first + last));
    }
  }
  CHECK(Content(Gzip(first)) == first);
  CHECK(Content(Gzip("")).empty());
}

TEST_CASE("gzip file: members longer than the input that is held") {
  const std::string content = Noise(400000);
  CHECK((Content(Gzip(content) + Gzip(content)) == content + content));
}

TEST_CASE("gzip file: a member that is cut off anywhere is an error, the first and a later one") {
  const std::string member = Gzip("a,b\n1,2\n");
  for (size_t size = 1; size < member.size(); ++size) {
    CAPTURE(size);
    const std::string cut = member.substr(0, size);
    for (const std::string& error : {Error(cut), Error(member + cut)}) {
      CHECK(error.find("f.gz: cannot be read after byte ") == 0);
      CHECK(error.find(" of its content: unexpected end of file. Fetch the file anew.") != std::string::npos);
    }
  }
}

TEST_CASE("gzip file: damage is told with the place of the content up to which it was read") {
  const std::string text = "a,b\n1,2\n";
  std::string member = Gzip(text);
  const auto error = [&](size_t from_end) {
    std::string wrong = member;
    wrong[wrong.size() - from_end] ^= 1;
    return Error(wrong);
  };
  CHECK(error(8) == Damaged("incorrect data check"));
  CHECK(error(4) == Damaged("incorrect length check"));
  member[2] = 9;
  CHECK(Error(member) == Damaged("unknown compression method"));
  const std::string noise = Noise(2 << 20);
  CHECK(Error(Gzip(noise) + member) == Damaged("unknown compression method", 2 << 20));
}

TEST_CASE("gzip file: bytes behind a member that begin no other are refused, with its end") {
  const std::string member = Gzip("a,b\n1,2\n");
  for (const size_t at : {size_t{0}, size_t{1}}) {
    std::string second = member;
    second[at] ^= 1;
    CHECK(Error(member + second) == RestError(member.size()));
  }
  CHECK(Error(member + "x") == RestError(member.size()));
  CHECK(Error(member + member + "3,4\n") == RestError(2 * member.size()));
}

TEST_CASE("gzip file: zeros up to the file's end are padding, others are refused") {
  const std::string member = Gzip("a,b\n1,2\n");
  for (const size_t count : {1, 2, 512, 500000}) {
    CAPTURE(count);
    const std::string zeros(count, '\0');
    CHECK(Content(member + zeros) == "a,b\n1,2\n");
    CHECK(Error(member + zeros + member) == RestError(member.size()));
    CHECK(Error(member + zeros + "x") == RestError(member.size()));
  }
}

TEST_CASE("gzip file: the bytes of the file up to the content that was read are told") {
  const std::string first = Gzip("a"), file = first + Gzip("b");
  bool given = false;
  GzipFile gzip("f.gz", [&](char* out, int64_t size) {
    return std::exchange(given, true) ? 0 : static_cast<int64_t>(file.copy(out, static_cast<size_t>(size)));
  });
  char text[2];
  CHECK(gzip.offset() == 0);
  CHECK(gzip.Read(text, 1) == 1);
  CHECK(gzip.offset() <= static_cast<int64_t>(first.size()));
  CHECK(gzip.Read(text, 2) == 1);
  CHECK(gzip.offset() == static_cast<int64_t>(file.size()));
}

}  // namespace
}  // namespace dtrain
