#include "trainer/summary/event_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/testing/files.h"
#include "base/tfrecord.h"
#include "trainer/summary/event_writer.h"

namespace dtrain {
namespace {

// A file of ten points of a curve.
std::string TenPoints() {
  LogOptions quiet;
  quiet.standard_error = false;
  Logger log("worker 0", quiet);
  ExitHooks hooks;
  EventWriter writer(testing::NewDirectory(), hooks, log);
  for (int step = 1; step <= 10; ++step) {
    writer.Add("loss", 1.0 / step, "The loss.");
    writer.WriteScalars(step, Clock::now());
  }
  return writer.path();
}

struct Read {
  std::vector<CurvePoint> points;
  std::string problem;
};

Read ReadAll(const std::string& path) {
  Read read;
  read.problem = ReadCurves(path, [&](const std::string& tag, const CurvePoint& point) {
    CHECK(tag == "loss");
    read.points.push_back(point);
  });
  return read;
}

TEST_CASE("event reader: the points of a whole file, with step, value and time") {
  const Read read = ReadAll(TenPoints());
  CHECK(read.problem == "");
  REQUIRE(read.points.size() == 10);
  CHECK(read.points[3].step == 4);
  CHECK(read.points[3].value == 0.25);
  CHECK(read.points[3].wall_s > 1.7e9);
}

TEST_CASE("event reader: of a file that is cut off anywhere, what comes before is read") {
  const std::string path = TenPoints(), whole = testing::FileContent(path);
  size_t most = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    WriteFileAtomically(path, whole.substr(0, size));
    const Read read = ReadAll(path);
    CHECK(read.points.size() >= most);
    CHECK(read.points.size() < 10);
    most = std::max(most, read.points.size());
  }
  CHECK(most == 9);
  WriteFileAtomically(path, whole.substr(0, whole.size() - 3));
  CHECK(ReadAll(path).problem.find("cut off in the record at byte ") == 0);
}

TEST_CASE("event reader: a flipped byte ends the reading at its record, and is told") {
  const std::string path = TenPoints(), whole = testing::FileContent(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    WriteFileAtomically(path, damaged);
    const Read read = ReadAll(path);
    CHECK(read.problem.find("damaged in the record at byte ") == 0);
    for (const CurvePoint& point : read.points) CHECK(point.value == static_cast<double>(1.0f / point.step));
  }
}

TEST_CASE("event reader: a record that claims 200 GiB takes no memory, also if the file has that length") {
  const std::string path = testing::NewDirectory() + "/sparse";
  const std::string length("\0\0\0\0\x32\0\0\0", 8);
  std::string head = length;
  for (int shift = 0; shift < 32; shift += 8) head += static_cast<char>(MaskedCrc(length) >> shift & 0xff);
  WriteFileAtomically(path, head);
  std::filesystem::resize_file(path, uintmax_t{201} << 30);
  CHECK(ReadAll(path).problem == "more than 64 MiB in the record at byte 0");
}

TEST_CASE("event reader: a file that is not there") {
  CHECK(ReadAll(testing::NewDirectory() + "/none").problem ==
        "cannot be read: No such file or directory (2)");
}

}  // namespace
}  // namespace dtrain
