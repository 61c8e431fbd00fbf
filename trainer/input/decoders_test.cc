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

std::string Member(Packing packing, const std::string& content) {
  return packing == Packing::kGzip ? Gzip(content) : Zstd(content);
}

// The content of `file`, which comes in pieces of `piece` bytes, read by calls for `size` bytes.
std::string Content(Packing packing, const std::string& file, int64_t piece = 1 << 20,
                    int64_t size = 1 << 20) {
  size_t at = 0;
  const auto decoder = MakeDecoder(packing, "packed", [&](char* out, int64_t most) {
    const size_t count = file.copy(out, static_cast<size_t>(std::min(piece, most)), at);
    at += count;
    return static_cast<int64_t>(count);
  });
  std::string content, part(static_cast<size_t>(size), '\0');
  while (const int64_t got = decoder->Read(part.data(), size)) {
    content.append(part, 0, static_cast<size_t>(got));
  }
  CHECK(decoder->Read(part.data(), size) == 0);
  CHECK(decoder->offset() == static_cast<int64_t>(file.size()));
  return content;
}

std::string Error(Packing packing, const std::string& file) {
  return UserErrorOf([&] { Content(packing, file); });
}

std::string Damaged(const std::string& why, int64_t after = 0) {
  return fmt::format("packed: cannot be read after byte {} of its content: {}. Fetch the file anew.", after,
                     why);
}

constexpr Packing kPackings[] = {Packing::kGzip, Packing::kZstd};
constexpr char kText[] = "a,b\n1,2\n";

TEST_CASE("packed file: the content of all members is read, in any sizes, and skippable frames have none") {
  const std::string last = Noise(2000), noise = Noise(400000), zeros(3 << 20, '0');
  for (const Packing packing : kPackings) {
    CAPTURE(static_cast<int>(packing));
    const auto member = [&](const std::string& content) { return Member(packing, content); };
    const std::string skippable =
        packing == Packing::kZstd ? std::string("\x5e\x2a\x4d\x18\x03\x00\x00\x00xyz", 11) : "";
    const std::string file = skippable + member(kText) + member("") + skippable + member(last) + skippable;
    for (const int64_t piece : {1, 7, 1 << 20}) {
      for (const int64_t size : {1, 3, 1 << 20}) {
        CAPTURE(piece);
        CAPTURE(size);
        CHECK((Content(packing, file, piece, size) == kText + last));
      }
    }
    CHECK(Content(packing, member("")).empty());
    CHECK((Content(packing, member(noise) + member(zeros)) == noise + zeros));  // longer than what is held
  }
}

TEST_CASE("packed file: a member that is cut off anywhere is an error, the first and a later one") {
  for (const Packing packing : kPackings) {
    const std::string member = Member(packing, kText);
    for (size_t size = 1; size < member.size(); ++size) {
      CAPTURE(size);
      const std::string cut = member.substr(0, size);
      for (const std::string& error : {Error(packing, cut), Error(packing, member + cut)}) {
        CHECK(error.find("packed: cannot be read after byte ") == 0);
        CHECK(error.find(" of its content: unexpected end of file. Fetch the file anew.") !=
              std::string::npos);
      }
    }
  }
}

TEST_CASE("packed file: damage is told with the place of the content up to which it was read") {
  const auto error = [&](Packing packing, size_t from_end) {
    std::string wrong = Member(packing, kText);
    wrong[wrong.size() - from_end] ^= 1;
    return Error(packing, wrong);
  };
  CHECK(error(Packing::kGzip, 8) == Damaged("incorrect data check"));
  CHECK(error(Packing::kGzip, 4) == Damaged("incorrect length check"));
  CHECK(error(Packing::kZstd, 1) == Damaged("Restored data doesn't match checksum"));
  std::string member = Gzip(kText);
  member[2] = 9;
  CHECK(Error(Packing::kGzip, member) == Damaged("unknown compression method"));
  const std::string noise = Noise(2 << 20);
  CHECK(Error(Packing::kGzip, Gzip(noise) + member) == Damaged("unknown compression method", 2 << 20));
}

TEST_CASE("packed file: bytes behind a member that begin no other are refused, with its end") {
  const auto check = [](Packing packing, const std::string& members, const std::string& rest) {
    CAPTURE(rest.size());
    const bool gzip = packing == Packing::kGzip;
    CHECK(
        Error(packing, members + rest) ==
        fmt::format("packed: byte {0}: a {1} ends here, and what follows is {2}. Fetch the file anew, or cut "
                    "off what follows if it is no data: head -c {0}.",
                    members.size(), gzip ? "gzip member" : "zstd frame",
                    gzip ? "neither another one nor zeros up to the file's end" : "no other one"));
  };
  const std::string member = Gzip(kText), frame = Zstd(kText);
  for (const size_t at : {size_t{0}, size_t{1}}) {
    std::string second = member;
    second[at] ^= 1;
    check(Packing::kGzip, member, second);
  }
  check(Packing::kGzip, member, "x");
  check(Packing::kGzip, member + member, "3,4\n");
  for (const std::string& rest :
       {std::string("x"), std::string("3,4\n"), std::string(512, '\0'), Zstd("").substr(1)}) {
    check(Packing::kZstd, frame, rest);
  }
  // Zeros up to the end are the padding of a gzip file.
  for (const size_t count : {1, 2, 512, 500000}) {
    const std::string zeros(count, '\0');
    CHECK(Content(Packing::kGzip, member + zeros) == kText);
    check(Packing::kGzip, member, zeros + member);
    check(Packing::kGzip, member, zeros + "x");
  }
}

TEST_CASE("packed file: the bytes of the file up to the content that was read are told") {
  const std::string first = Gzip("a"), file = first + Gzip("b");
  bool given = false;
  const auto gzip = MakeDecoder(Packing::kGzip, "packed", [&](char* out, int64_t size) {
    return std::exchange(given, true) ? 0 : static_cast<int64_t>(file.copy(out, static_cast<size_t>(size)));
  });
  char text[2];
  CHECK(gzip->offset() == 0);
  CHECK(gzip->Read(text, 1) == 1);
  CHECK(gzip->offset() <= static_cast<int64_t>(first.size()));
  CHECK(gzip->Read(text, 2) == 1);
  CHECK(gzip->offset() == static_cast<int64_t>(file.size()));
}

TEST_CASE("zstd file: a window above the limit is refused, with the commands that pack it anew") {
  // A frame header that asks for a window of 1 GiB (RFC 8878, 3.1.1.1.2: exponent 20 in the upper five bits).
  const std::string header("\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00", 9);
  CHECK(
      Error(Packing::kZstd, header) ==
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
  for (const char* bytes : {"", "\x1f", "(", "\x28\xb5\x2f"}) CHECK(MayBePacked(bytes));
  for (const char* bytes : {"a", "(1"}) CHECK_FALSE(MayBePacked(bytes));
  CHECK(PackingOf("\x1f\x8b") == Packing::kGzip);
  CHECK(PackingOf("\x28\xb5\x2f\xfd") == Packing::kZstd);
  CHECK(PackingOf("\x50\x2a\x4d\x18") == Packing::kZstd);
  CHECK(PackingOf("P*M,") == Packing::kNone);
}

TEST_CASE(
    "packing: a text in another packing, or none at all, is known by its first bytes, with what unpacks it") {
  const auto told = [](const std::string& bytes, Packing packing = Packing::kNone, const char* path = "a b") {
    return NoTextBecause(bytes, packing, path);
  };
  CHECK(told("BZh91AY&SY..") ==
        "is packed with bzip2; rows must be text. Give what unpacks it as the path: \"exec:bzcat 'a b'\".");
  CHECK(told(std::string("\xfd"
                         "7zXZ\0",
                         6),
             Packing::kNone, "t.xz")
            .find("\"exec:xzcat t.xz\"") != std::string::npos);
  CHECK(told("PK\3\4..").find("is a zip archive") == 0);
  const std::string tar = "t.csv" + std::string(252, '\0') + "ustar";
  CHECK(told(tar, Packing::kNone, "t.tar").find("\"exec:tar -xOf t.tar\"") != std::string::npos);
  CHECK(told(tar, Packing::kGzip, "t.tgz").find("\"exec:gzip -dc t.tgz | tar -xOf -\"") != std::string::npos);
  CHECK(told("\x1f\x8b\x08", Packing::kGzip, "t.gz") ==
        "is packed with gzip, inside gzip; rows must be text. Give what unpacks it as the path: "
        "\"exec:gzip -dc t.gz | gzip -dc -\".");
  CHECK(told("PAR1\x15\x04") == "is Parquet; rows must be text. Save it as CSV.");
  for (const char* text : {"a,b\n1,2\n", "BZh,PK,PAR1\n", "PK\n1\n", "", "%a\n", "7z,Rar!\n"}) {
    CAPTURE(text);
    CHECK(told(text).empty());
  }
}

}  // namespace
}  // namespace dtrain
