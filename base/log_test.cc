#include "base/log.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "base/names.h"
#include "base/testing/captured.h"
#include "base/testing/file_limit.h"
#include "base/testing/files.h"

namespace dtrain {
namespace {

LogOptions FileOnly(const std::string& directory, bool json) {
  LogOptions options;
  options.directory = directory;
  options.json = json;
  options.standard_error = false;
  return options;
}

TEST_CASE("log: a line holds time, task, level and text; lower levels are left out") {
  Logger log("worker 1", FileOnly(testing::NewDirectory(), false));
  log.Debug("hidden");
  log.Info("step {}", 7);
  log.Warning("late");
  const std::string text = testing::FileContent(log.path());
  CHECK(text.find("hidden") == std::string::npos);
  CHECK(text.find(" worker 1 | step 7\n") != std::string::npos);
  CHECK(text.find(" worker 1 | warning: late\n") != std::string::npos);
  CHECK(log.path().find("worker-1.log") != std::string::npos);
}

TEST_CASE("log: who watches it gets the warnings and errors that are written, and nothing else") {
  std::string seen;
  LogOptions options = FileOnly(testing::NewDirectory(), false);
  options.watch = [&](const std::string& task, LogLevel level, std::string_view text) {
    seen += fmt::format("{} {} {};", task, level == LogLevel::kError ? "error" : "warning", text);
  };
  Logger log("worker 1", options);
  log.Info("step");
  log.Warning("late {}", 3);
  log.Error("lost");
  CHECK(seen == "worker 1 warning late 3;worker 1 error lost;");
}

TEST_CASE("log: json lines survive quotes, newlines and bytes that are not UTF-8") {
  Logger log("ps 0", FileOnly(testing::NewDirectory(), true));
  log.Info("a \"b\"\nc {}", "\xff");
  const Json line = Json::Parse(testing::FileContent(log.path()));
  CHECK(line["task"] == "ps 0");
  CHECK(line["level"] == "info");
  CHECK(line["text"].get<std::string>().find("a \"b\"\nc ") == 0);
}

TEST_CASE("log: a record's fields are members in json, null where they do not apply, and nothing in text") {
  const auto record = [](Logger& log) {
    log.Record(LogLevel::kInfo, "step 7", {{"step", int64_t{7}}, {"loss", 0.5}, {"batch", {}}});
  };
  Logger json("ps 0", FileOnly(testing::NewDirectory(), true));
  record(json);
  const Json line = Json::Parse(testing::FileContent(json.path()));
  CHECK(line["text"] == "step 7");
  CHECK(line["step"] == 7);
  CHECK(line["loss"] == 0.5);
  CHECK(line.at("batch").is_null());
  Logger text("ps 0", FileOnly(testing::NewDirectory(), false));
  record(text);
  CHECK(testing::FileContent(text.path()).find(" ps 0 | step 7\n") != std::string::npos);
}

TEST_CASE("log: json lines have the host, the run once it is known, and the name of an event") {
  Logger log("ps 0", FileOnly(testing::NewDirectory(), true));
  log.Info("before");
  log.SetRun(0xabc);
  log.Event(kEventRunStarted, LogLevel::kInfo, "all are here");
  const std::string text = testing::FileContent(log.path());
  const Json before = Json::Parse(text.substr(0, text.find('\n')));
  const Json event = Json::Parse(text.substr(text.find('\n') + 1));
  CHECK(before.at("host") == HostName());
  CHECK(before.Find("run") == nullptr);
  CHECK(event.at("run") == "0000000000000abc");
  CHECK(event.at("event") == "run_started");
}

TEST_CASE("log: where hosts are shown, a text line has the task's") {
  LogOptions options = FileOnly(testing::NewDirectory(), false);
  options.show_host = true;
  Logger log("worker 7", options);
  log.Info("hello");
  CHECK(testing::FileContent(log.path()).find(" worker 7@" + HostName() + " | hello\n") != std::string::npos);
}

TEST_CASE("log: no level hides a result") {
  LogOptions options = FileOnly(testing::NewDirectory(), false);
  options.level = LogLevel::kWarning;
  Logger log("ps 0", options);
  log.Info("hidden");
  log.Result("accuracy {}", 1);
  CHECK(testing::FileContent(log.path()).find(" ps 0 | accuracy 1\n") == 29);
}

TEST_CASE(
    "log: results and, in a brief log, details go to the file; JSON and debug have them on standard error") {
  const auto shown = [](bool json, LogLevel level) {
    LogOptions options;
    options.directory = testing::NewDirectory();
    options.json = json;
    options.level = level;
    options.brief = true;
    Logger log("ps 0", options);
    const std::string text = testing::Captured([&] {
      log.Detail("device {}", 7);
      log.Result("accuracy {}", 1);
    });
    const std::string file = testing::FileContent(log.path());
    CHECK(file.find("device 7") != std::string::npos);
    CHECK(file.find("accuracy 1") != std::string::npos);
    return (text.find("device 7") != std::string::npos ? 1 : 0) +
           (text.find("accuracy 1") != std::string::npos ? 2 : 0);
  };
  CHECK(shown(false, LogLevel::kInfo) == 0);
  CHECK(shown(false, LogLevel::kDebug) == 3);
  CHECK(shown(true, LogLevel::kInfo) == 3);
}

TEST_CASE("log: a file that cannot be written is said once, and lines that come later are tried") {
  const std::string directory = testing::NewDirectory();
  LogFile file("ps 0", directory);
  const FileLimit full(0);
  CHECK(file.Append("a line\n").find(directory + "/ps-0.log: cannot be written: File too large") == 0);
  CHECK(file.Append("another\n") == "");
}

TEST_CASE("log: a link in the place of the file is refused, and what it leads to stays as it was") {
  const std::string directory = testing::NewDirectory(), other = testing::NewDirectory();
  std::ofstream(other + "/precious") << "untouched";
  std::filesystem::create_symlink(other + "/precious", directory + "/ps-0.log");
  CHECK_THROWS_WITH_AS(LogFile("ps 0", directory),
                       doctest::Contains((directory + "/ps-0.log: is a symbolic link").c_str()), UserError);
  CHECK(testing::FileContent(other + "/precious") == "untouched");
  std::filesystem::create_directory_symlink(other,
                                            directory + "/link");  // of the whole directory is the user's
  CHECK(LogFile("ps 0", directory + "/link").Append("a line\n") == "");
  CHECK(testing::FileContent(other + "/ps-0.log") == "a line\n");
}

TEST_CASE("log: a directory that cannot be used is the user's error, with the path") {
  CHECK_THROWS_WITH_AS(Logger("ps 0", FileOnly("/proc/nowhere", false)),
                       doctest::Contains("/proc/nowhere/ps-0.log"), UserError);
}

}  // namespace
}  // namespace dtrain
