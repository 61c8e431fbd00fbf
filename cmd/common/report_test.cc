#include "cmd/common/report.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/json.h"
#include "base/testing/files.h"

namespace dtrain {
namespace {

const ErrorLines kErrors;

std::string PathOf(const std::string& name) { return std::string(getenv("TEST_TMPDIR")) + "/" + name; }

Json Read(const std::string& path) { return Json::Parse(testing::FileContent(path)); }

TEST_CASE("result file: the first ending is the one that is written") {
  const std::string path = PathOf("first.json");
  ResultFile result(path, kErrors);
  RunSummary summary;
  summary.status = "done";
  summary.global_step = 7;
  summary.local_steps = {7};
  CHECK(result.Write(summary));
  result.WriteEnding({"stopped", 143, {}});
  CHECK(Read(path).at("status") == "done");
  CHECK(Read(path).at("global_step") == 7);
}

TEST_CASE("result file: an ending without a summary has its status and the time it took") {
  const std::string path = PathOf("ending.json");
  ResultFile result(path, kErrors);
  result.WriteEnding({"peer_lost", 4, {}});
  CHECK(Read(path).at("status") == "peer_lost");
  CHECK(Read(path).at("wall_s").get<double>() >= 0);
  CHECK(Read(path).at("steps_per_s").is_null());
}

TEST_CASE("result file: an older file is gone once the run has begun") {
  const std::string path = PathOf("older.json");
  std::ofstream(path) << "old";
  const ResultFile result(path, kErrors);
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("result file: missing directories are made") {
  const std::string path = PathOf("a/b/c.json");
  ResultFile result(path, kErrors);
  result.WriteEnding({"failed", 1, {}});
  CHECK(Read(path).is_object());
}

TEST_CASE("result file: a place that cannot be written is refused at once, and left alone") {
  std::filesystem::create_directories(PathOf("directory"));
  for (const std::string& path :
       {PathOf("directory"), std::string("/dev/null"), std::string("/proc/x/r.json")}) {
    CAPTURE(path);
    CHECK_THROWS_WITH_AS(ResultFile(path, kErrors), doctest::Contains(("--result " + path).c_str()),
                         UserError);
  }
  CHECK(std::filesystem::is_directory(PathOf("directory")));
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("result file: without a path nothing is written") {
  ResultFile result("", kErrors);
  result.WriteEnding({"failed", 1, {}});
}

TEST_CASE("result file: its parent hears in lines that the run has begun, of lost tasks and of the result") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  ResultFile result("", kErrors, ends[1]);
  result.NoteBegun({"00000000000000ab", {{"ps 0", "node1"}}});
  result.NoteLost("ps 1", "silent");
  RunSummary summary;
  summary.status = "done";
  CHECK(result.Write(summary));
  close(ends[1]);
  std::string text;
  char c = 0;
  while (read(ends[0], &c, 1) == 1) text += c;
  close(ends[0]);
  const std::string before =
      "@begun {\"run_id\":\"00000000000000ab\",\"hosts\":{\"ps 0\":\"node1\"}}\n@lost ps 1: silent\n@result ";
  REQUIRE(text.rfind(before, 0) == 0);
  CHECK(text.back() == '\n');
  const std::string line = text.substr(before.size(), text.size() - before.size() - 1);
  CHECK(line.find('\n') == std::string::npos);
  RunSummary read_back;
  REQUIRE(FromWireJson(line, &read_back));
  CHECK(read_back.status == "done");
}

}  // namespace
}  // namespace dtrain
