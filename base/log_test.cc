#include "base/log.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"

namespace dtrain {
namespace {

std::string TestDirectory(const std::string& name) {
  const char* root = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(root == nullptr ? "/tmp" : root) + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

std::string ReadAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

LogOptions FileOnly(const std::string& directory, bool json) {
  LogOptions options;
  options.directory = directory;
  options.json = json;
  options.standard_error = false;
  return options;
}

TEST_CASE("log: a line holds time, task, level and text; lower levels are left out") {
  Logger log("worker 1", FileOnly(TestDirectory("text"), false));
  log.Debug("hidden");
  log.Info("step {}", 7);
  log.Warning("late");
  const std::string text = ReadAll(log.path());
  CHECK(text.find("hidden") == std::string::npos);
  CHECK(text.find(" worker 1 | step 7\n") != std::string::npos);
  CHECK(text.find(" worker 1 | warning: late\n") != std::string::npos);
  CHECK(log.path().find("worker-1.log") != std::string::npos);
}

TEST_CASE("log: json lines survive quotes, newlines and bytes that are not UTF-8") {
  Logger log("ps 0", FileOnly(TestDirectory("json"), true));
  log.Info("a \"b\"\nc {}", "\xff");
  const nlohmann::json line = nlohmann::json::parse(ReadAll(log.path()));
  CHECK(line["task"] == "ps 0");
  CHECK(line["level"] == "info");
  CHECK(line["text"].get<std::string>().find("a \"b\"\nc ") == 0);
}

TEST_CASE("log: a record's fields are members in json, null where they do not apply, and nothing in text") {
  const auto record = [](Logger& log) {
    log.Record(LogLevel::kInfo, "step 7", {{"step", int64_t{7}}, {"loss", 0.5}, {"batch", {}}});
  };
  Logger json("ps 0", FileOnly(TestDirectory("json_record"), true));
  record(json);
  const nlohmann::json line = nlohmann::json::parse(ReadAll(json.path()));
  CHECK(line["text"] == "step 7");
  CHECK(line["step"] == 7);
  CHECK(line["loss"] == 0.5);
  CHECK(line.at("batch").is_null());
  Logger text("ps 0", FileOnly(TestDirectory("text_record"), false));
  record(text);
  CHECK(ReadAll(text.path()).find(" ps 0 | step 7\n") != std::string::npos);
}

TEST_CASE("log: a directory that cannot be used is the user's error, with the path") {
  CHECK_THROWS_WITH_AS(Logger("ps 0", FileOnly("/proc/nowhere", false)),
                       doctest::Contains("/proc/nowhere/ps-0.log"), UserError);
}

}  // namespace
}  // namespace dtrain
