#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/random.h"
#include "trainer/data/files/data_test_util.h"
#include "trainer/data/files/decoders.h"
#include "trainer/data/files/input_bytes.h"

namespace dtrain {
namespace {

std::string Zstd(const std::string& content) { return ReadBack(WriteZstd("frame.zst", content)); }

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
  ZstdFile zstd("f.zst", [&](char* out, int64_t most) {
    const size_t count = file.copy(out, static_cast<size_t>(std::min(piece, most)), at);
    at += count;
    return static_cast<int64_t>(count);
  });
  std::string content, part(static_cast<size_t>(size), '\0');
  while (const int64_t got = zstd.Read(part.data(), size)) {
    content.append(part, 0, static_cast<size_t>(got));
  }
  CHECK(zstd.Read(part.data(), size) == 0);
  CHECK(zstd.offset() == static_cast<int64_t>(file.size()));
  return content;
}

std::string Error(const std::string& file) {
  return UserErrorOf([&] { Content(file); });
}

TEST_CASE("zstd file: the content of all frames is read, in any sizes, and skippable frames have none") {
  const std::string first = "a,b\n1,2\n", last = Noise(2000);
  const std::string skippable("\x5e\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
  const std::string file = skippable + Zstd(first) + Zstd("") + skippable + Zstd(last) + skippable;
  for (const int64_t piece : {1, 7, 1 << 20}) {
    for (const int64_t size : {1, 3, 1 << 20}) {
      CAPTURE(piece);
      CAPTURE(size);
      CHECK((Content(file, piece, size) == first + last));
    }
  }
  CHECK(Content(Zstd("")).empty());
  const std::string noise = Noise(400000), zeros(3 << 20, '0');
  CHECK((Content(Zstd(noise) + Zstd(zeros)) == noise + zeros));
}

TEST_CASE("zstd file: a frame that is cut off anywhere is an error, the first and a later one") {
  const std::string frame = Zstd("a,b\n1,2\n");
  for (size_t size = 1; size < frame.size(); ++size) {
    CAPTURE(size);
    const std::string cut = frame.substr(0, size);
    for (const std::string& error : {Error(cut), Error(frame + cut)}) {
      CHECK(error.find("f.zst: cannot be read after byte ") == 0);
      CHECK(error.find(" of its content: unexpected end of file. Fetch the file anew.") != std::string::npos);
    }
  }
}

TEST_CASE("zstd file: damage is told with the place of the content up to which it was read") {
  std::string frame = Zstd("a,b\n1,2\n");
  frame.back() ^= 1;
  CHECK(Error(frame) ==
        "f.zst: cannot be read after byte 0 of its content: Restored data doesn't match checksum. Fetch the "
        "file anew.");
}

TEST_CASE("zstd file: bytes behind a frame that begin no other are refused, with its end") {
  const std::string frame = Zstd("a,b\n1,2\n");
  for (const std::string& rest :
       {std::string("x"), std::string("3,4\n"), std::string(512, '\0'), Zstd("").substr(1)}) {
    CHECK(Error(frame + rest) ==
          fmt::format("f.zst: byte {0}: a zstd frame ends here, and what follows is no other one. Fetch the "
                      "file anew, or cut off what follows if it is no data: head -c {0}.",
                      frame.size()));
  }
}

TEST_CASE("zstd file: a window above the limit is refused, with the commands that pack it anew") {
  // A frame header that asks for a window of 1 GiB (RFC 8878, 3.1.1.1.2: exponent 20 in the upper five bits).
  const std::string header("\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00", 9);
  CHECK(Error(header) ==
        "f.zst: byte 0: a zstd frame needs a window above 128 MiB, which is the limit. Pack it anew: zstd -d "
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
