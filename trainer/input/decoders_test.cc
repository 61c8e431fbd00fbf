#include "trainer/input/decoders.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.h"
#include "trainer/input/data_test_util.h"
#include "trainer/input/input_bytes.h"

namespace dtrain {
namespace {

std::string Gzip(const std::string& content) { return ReadBack(WriteGzip("member.gz", content)); }
std::string Zstd(const std::string& content) { return ReadBack(WriteZstd("frame.zst", content)); }

// Bytes that take several fills of the input, and are the same each time.
std::string Noise(size_t size) {
  const CounterRandom random(3);
  std::string content;
  for (uint64_t i = 0; i < size; ++i) content += static_cast<char>(random.Below(i, 200));
  return content;
}

// The content of `file`, which comes in pieces of `piece` bytes, read by calls for `size` bytes.
template <typename Decoder>
std::string Content(const std::string& file, int64_t piece = 1 << 20, int64_t size = 1 << 20) {
  size_t at = 0;
  Decoder decoder("packed", [&](char* out, int64_t most) {
    const size_t count = file.copy(out, static_cast<size_t>(std::min(piece, most)), at);
    at += count;
    return static_cast<int64_t>(count);
  });
  std::string content, part(static_cast<size_t>(size), '\0');
  while (const int64_t got = decoder.Read(part.data(), size)) {
    content.append(part, 0, static_cast<size_t>(got));
  }
  CHECK(decoder.Read(part.data(), size) == 0);
  CHECK(decoder.offset() == static_cast<int64_t>(file.size()));
  return content;
}

template <typename Decoder>
std::string Error(const std::string& file) {
  return UserErrorOf([&] { Content<Decoder>(file); });
}

template <typename Decoder>
void CheckSizes(const std::string& file, const std::string& content) {
  for (const int64_t piece : {1, 7, 1 << 20}) {
    for (const int64_t size : {1, 3, 1 << 20}) {
      CAPTURE(piece);
      CAPTURE(size);
      CHECK((Content<Decoder>(file, piece, size) == content));
    }
  }
}

// `part`: a member or a frame.
template <typename Decoder>
void CheckCuts(const std::string& part) {
  for (size_t size = 1; size < part.size(); ++size) {
    CAPTURE(size);
    const std::string cut = part.substr(0, size);
    for (const std::string& error : {Error<Decoder>(cut), Error<Decoder>(part + cut)}) {
      CHECK(error.find("packed: cannot be read after byte ") == 0);
      CHECK(error.find(" of its content: unexpected end of file. Fetch the file anew.") != std::string::npos);
    }
  }
}

std::string RestError(size_t member_end) {
  return fmt::format(
      "packed: byte {}: a gzip member ends here, and what follows is neither another one nor zeros up to the "
      "file's end. Fetch the file anew, or cut off what follows if it is no data: head -c {}.",
      member_end, member_end);
}

std::string Damaged(const std::string& why, int64_t after = 0) {
  return fmt::format("packed: cannot be read after byte {} of its content: {}. Fetch the file anew.", after,
                     why);
}

TEST_CASE("gzip file: the content of all members is read, in any sizes") {
  const std::string first = "a,b\n1,2\n", last = Noise(2000);
  CheckSizes<GzipFile>(Gzip(first) + Gzip("") + Gzip(last), first + last);
  CHECK(Content<GzipFile>(Gzip(first)) == first);
  CHECK(Content<GzipFile>(Gzip("")).empty());
}

TEST_CASE("gzip file: members longer than the input that is held") {
  const std::string content = Noise(400000);
  CHECK((Content<GzipFile>(Gzip(content) + Gzip(content)) == content + content));
}

TEST_CASE("gzip file: a member that is cut off anywhere is an error, the first and a later one") {
  CheckCuts<GzipFile>(Gzip("a,b\n1,2\n"));
}

TEST_CASE("gzip file: damage is told with the place of the content up to which it was read") {
  const std::string text = "a,b\n1,2\n";
  std::string member = Gzip(text);
  const auto error = [&](size_t from_end) {
    std::string wrong = member;
    wrong[wrong.size() - from_end] ^= 1;
    return Error<GzipFile>(wrong);
  };
  CHECK(error(8) == Damaged("incorrect data check"));
  CHECK(error(4) == Damaged("incorrect length check"));
  member[2] = 9;
  CHECK(Error<GzipFile>(member) == Damaged("unknown compression method"));
  const std::string noise = Noise(2 << 20);
  CHECK(Error<GzipFile>(Gzip(noise) + member) == Damaged("unknown compression method", 2 << 20));
}

TEST_CASE("gzip file: bytes behind a member that begin no other are refused, with its end") {
  const std::string member = Gzip("a,b\n1,2\n");
  for (const size_t at : {size_t{0}, size_t{1}}) {
    std::string second = member;
    second[at] ^= 1;
    CHECK(Error<GzipFile>(member + second) == RestError(member.size()));
  }
  CHECK(Error<GzipFile>(member + "x") == RestError(member.size()));
  CHECK(Error<GzipFile>(member + member + "3,4\n") == RestError(2 * member.size()));
}

TEST_CASE("gzip file: zeros up to the file's end are padding, others are refused") {
  const std::string member = Gzip("a,b\n1,2\n");
  for (const size_t count : {1, 2, 512, 500000}) {
    CAPTURE(count);
    const std::string zeros(count, '\0');
    CHECK(Content<GzipFile>(member + zeros) == "a,b\n1,2\n");
    CHECK(Error<GzipFile>(member + zeros + member) == RestError(member.size()));
    CHECK(Error<GzipFile>(member + zeros + "x") == RestError(member.size()));
  }
}

TEST_CASE("gzip file: the bytes of the file up to the content that was read are told") {
  const std::string first = Gzip("a"), file = first + Gzip("b");
  bool given = false;
  GzipFile gzip("packed", [&](char* out, int64_t size) {
    return std::exchange(given, true) ? 0 : static_cast<int64_t>(file.copy(out, static_cast<size_t>(size)));
  });
  char text[2];
  CHECK(gzip.offset() == 0);
  CHECK(gzip.Read(text, 1) == 1);
  CHECK(gzip.offset() <= static_cast<int64_t>(first.size()));
  CHECK(gzip.Read(text, 2) == 1);
  CHECK(gzip.offset() == static_cast<int64_t>(file.size()));
}

TEST_CASE("zstd file: the content of all frames is read, in any sizes, and skippable frames have none") {
  const std::string first = "a,b\n1,2\n", last = Noise(2000);
  const std::string skippable("\x5e\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
  CheckSizes<ZstdFile>(skippable + Zstd(first) + Zstd("") + skippable + Zstd(last) + skippable, first + last);
  CHECK(Content<ZstdFile>(Zstd("")).empty());
  const std::string noise = Noise(400000), zeros(3 << 20, '0');
  CHECK((Content<ZstdFile>(Zstd(noise) + Zstd(zeros)) == noise + zeros));
}

TEST_CASE("zstd file: a frame that is cut off anywhere is an error, the first and a later one") {
  CheckCuts<ZstdFile>(Zstd("a,b\n1,2\n"));
}

TEST_CASE("zstd file: damage is told with the place of the content up to which it was read") {
  std::string frame = Zstd("a,b\n1,2\n");
  frame.back() ^= 1;
  CHECK(Error<ZstdFile>(frame) ==
        "packed: cannot be read after byte 0 of its content: Restored data doesn't match checksum. Fetch the "
        "file anew.");
}

TEST_CASE("zstd file: bytes behind a frame that begin no other are refused, with its end") {
  const std::string frame = Zstd("a,b\n1,2\n");
  for (const std::string& rest :
       {std::string("x"), std::string("3,4\n"), std::string(512, '\0'), Zstd("").substr(1)}) {
    CHECK(Error<ZstdFile>(frame + rest) ==
          fmt::format("packed: byte {0}: a zstd frame ends here, and what follows is no other one. Fetch the "
                      "file anew, or cut off what follows if it is no data: head -c {0}.",
                      frame.size()));
  }
}

TEST_CASE("zstd file: a window above the limit is refused, with the commands that pack it anew") {
  // A frame header that asks for a window of 1 GiB (RFC 8878, 3.1.1.1.2: exponent 20 in the upper five bits).
  const std::string header("\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00", 9);
  CHECK(
      Error<ZstdFile>(header) ==
      "packed: byte 0: a zstd frame needs a window above 128 MiB, which is the limit. Pack it anew: zstd -d "
      "--long=31 -c FILE | zstd --long=27 -o NEW.zst.");
}

TEST_CASE("input: zstd is found by its first bytes, whatever the file's name, and holds what it can hold") {
  const std::string content(1 << 20, '7');
  InputBytes input(WriteZstd("looks-plain.csv", content), "data.train.path");
  CHECK(input.compressed());
  CHECK(input.CanHold(content.size()));
  CHECK_FALSE(input.CanHold(input.file_size() << 16));
  std::string read(content.size() + 1, '\0');
  CHECK(input.Read(read.data(), static_cast<int64_t>(read.size())) == static_cast<int64_t>(content.size()));
  CHECK((read.substr(0, content.size()) == content));
  CHECK(input.ExpectedContent() == static_cast<int64_t>(content.size()));
}

TEST_CASE("packing: a reader waits for no byte that decides nothing") {
  CHECK_FALSE(MayBePacked("a"));
  CHECK(MayBePacked(""));
  CHECK(MayBePacked("\x1f"));
  CHECK(MayBePacked("("));
  CHECK_FALSE(MayBePacked("(1"));
  CHECK(MayBePacked("\x28\xb5\x2f"));
  CHECK(PackingOf("\x1f\x8b") == Packing::kGzip);
  CHECK(PackingOf("\x28\xb5\x2f\xfd") == Packing::kZstd);
  CHECK(PackingOf("\x50\x2a\x4d\x18") == Packing::kZstd);
  CHECK(PackingOf("P*M,") == Packing::kNone);
}

}  // namespace
}  // namespace dtrain
