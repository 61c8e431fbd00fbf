// Checkpoints that an older dtrain wrote (testdata/README.md): this one reads each as that one did.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

const std::string kData = "configs/data/flowers.csv";

// One of testdata/checkpoints/, with what was recorded of it.
struct Old {
  explicit Old(std::string in) : directory(std::move(in)) {
    for (const auto& entry : fs::directory_iterator(checkpoints)) {
      if (entry.is_directory()) checkpoint = entry.path().string();
    }
  }
  int PsThatWrote() const {
    return static_cast<int>(std::count_if(
        fs::directory_iterator(checkpoint), fs::directory_iterator(),
        [](const auto& entry) { return entry.path().filename().string().rfind("shard-", 0) == 0; }));
  }
  // For a command whose config is the checkpoint's own, in which the path of the data is another machine's.
  std::vector<std::string> OwnData() const {
    if (!Contains(FileContent(job), "flowers.csv")) return {};
    return {"--set", "data.train.path=" + kData};
  }

  std::string directory;
  std::string job = directory + "/job.yaml";
  std::string checkpoints = directory + "/ckpt";
  std::string checkpoint;
  Json expected = ReadResult(directory + "/expected.json");
};

std::vector<Old> All() {
  std::vector<Old> all;
  for (const auto& entry : fs::directory_iterator("testdata/checkpoints")) {
    all.emplace_back(entry.path().string());
  }
  std::sort(all.begin(), all.end(), [](const Old& a, const Old& b) { return a.directory < b.directory; });
  REQUIRE(all.size() == 15);
  return all;
}

std::string WithoutTimes(const std::string& text) {
  static const std::regex kTime("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.+-]{18}");
  static const std::regex kBlanks(" +");  // a time has the width of its column
  return std::regex_replace(std::regex_replace(text, kTime, "TIME"), kBlanks, " ");
}

// OpenBLAS with the kernels of what was recorded, because others round otherwise. Those of dtrain give the
// same bits for AVX2 and for AVX-512.
const Program kAsRecorded{"cmd/dtrain", {"OPENBLAS_CORETYPE=Zen"}};

bool HasSameKernels(const Old& old) {
  static const std::string version =
      std::regex_replace(Run({"--version"}, kAsRecorded).output, std::regex("AVX-512"), "AVX2");
  return Contains(version, old.expected.at("kernels").get<std::string>() + "\n");
}

TEST_CASE("old checkpoints: inspect says of each what it said") {
  for (const Old& old : All()) {
    CAPTURE(old.directory);
    const Done inspect = Run({"inspect", old.checkpoints});
    CHECK(inspect.code == 0);
    CHECK(WithoutTimes(inspect.output) == WithoutTimes(FileContent(old.directory + "/inspect.txt")));
    CHECK(inspect.error == "");
  }
}

// For what other kernels may round otherwise, of a few steps and a few rows.
constexpr double kTolerance = 1e-4;

void CheckFigures(const Old& old, const std::vector<std::string>& more) {
  const std::string path = NewDirectory() + "/eval.json";
  std::vector<std::string> arguments = {"eval", old.checkpoints, "--result", path};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Done eval = Run(arguments);
  CAPTURE(eval.error);
  REQUIRE(eval.code == 0);
  const Json result = ReadResult(path);
  for (const auto& [key, value] : old.expected.at("eval").items()) {
    CAPTURE(key);
    REQUIRE(result.contains(key));
    if (value.is_number_float()) {
      CHECK(result.at(key).get<double>() == doctest::Approx(value.get<double>()).epsilon(kTolerance));
    } else {
      CHECK(result.at(key) == value);
    }
  }
}

TEST_CASE("old checkpoints: eval gives the figures of each, by its job's file and by its own") {
  for (const Old& old : All()) {
    CAPTURE(old.directory);
    CheckFigures(old, {"--config", old.job});
    CheckFigures(old, old.OwnData());
  }
}

TEST_CASE("old checkpoints: export writes the same bytes of each, in every form") {
  for (const Old& old : All()) {
    CAPTURE(old.directory);
    for (const auto& [form, checksum] : old.expected.at("export_sha256").items()) {
      CAPTURE(form);
      const std::string out = NewDirectory() + "/model." + form;
      const Done done = Run({"export", old.checkpoints, "--config", old.job, "--out", out});
      CAPTURE(done.error);
      REQUIRE(done.code == 0);
      Program sha256sum;
      sha256sum.path = "/usr/bin/sha256sum";
      CHECK(Run({out}, sha256sum).output.substr(0, 64) == checksum);
    }
  }
}

// The result of a run that goes on from it, with as many workers as what was recorded.
Json Resume(const Old& old, int ps, const std::vector<std::string>& more) {
  const std::string path = NewDirectory() + "/result.json";
  const int workers = old.expected.at("resume").at("workers");
  std::vector<std::string> arguments = {
      "local", "--ps", std::to_string(ps), "--workers", std::to_string(workers), "--result", path};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Done run = Run(arguments, kAsRecorded);
  CAPTURE(run.error);
  REQUIRE(run.code == 0);
  return ReadResult(path);
}

void CheckGoesToTheEnd(const Old& old, const Json& result) {
  const Json& expected = old.expected.at("resume");
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == expected.at("global_step"));
  CHECK(result.at("deterministic") == expected.at("deterministic"));
}

// A run whose result is the same bits each time.
void CheckBits(const Old& old, const Json& result) {
  const Json& expected = old.expected.at("resume");
  if (!expected.contains("model_crc")) return;
  const char* const loss = expected.contains("test_loss") ? "test_loss" : "validation_loss";
  CHECK(result.at(loss).get<double>() ==
        doctest::Approx(expected.at(loss).get<double>()).epsilon(kTolerance));
  if (HasSameKernels(old)) {
    CHECK(result.at("model_crc") == expected.at("model_crc"));
  } else {
    fmt::print("SKIPPED: the model_crc of {} was recorded with {}\n", old.directory,
               old.expected.at("kernels").get<std::string>());
  }
}

// As those of a run that was stopped: a directory of its own that is written to.
std::string CopyOf(const Old& old) {
  const std::string copy = NewDirectory() + "/ckpt";
  fs::copy(old.checkpoints, copy, fs::copy_options::recursive);
  return copy;
}

TEST_CASE(
    "old checkpoints: a run that has all its steps restores each, bit for bit, on another number of ps") {
  for (const Old& old : All()) {
    CAPTURE(old.directory);
    const Json& saved = old.expected.at("eval");
    const std::string steps = fmt::format("train.steps={}", saved.at("global_step").get<int64_t>());
    const Json result =
        Resume(old, old.expected.at("resume").at("ps"),
               {"--config", old.job, "--set", "checkpoint.dir=" + CopyOf(old), "--set", steps});
    CHECK(result.at("status") == "already_done");
    CHECK(result.at("global_step") == saved.at("global_step"));
    CHECK(result.at("model_crc") == saved.at("model_crc"));
  }
}

TEST_CASE("old checkpoints: a run goes on from each to its last step, on another number of ps") {
  for (const Old& old : All()) {
    CAPTURE(old.directory);
    const Json result = Resume(old, old.expected.at("resume").at("ps"),
                               {"--config", old.job, "--set", "checkpoint.dir=" + CopyOf(old)});
    CheckGoesToTheEnd(old, result);
    CheckBits(old, result);
  }
}

TEST_CASE("old checkpoints: a run goes on from each by the config.yaml that was saved with it") {
  for (const Old& old : All()) {
    CAPTURE(old.directory);
    const std::string directory = NewDirectory();
    const int64_t steps = old.expected.at("resume").at("global_step");
    std::vector<std::string> more = {"--config", old.checkpoint + "/config.yaml",
                                     "--set",    "checkpoint.dir=" + directory,
                                     "--set",    "checkpoint.resume=" + fs::absolute(old.checkpoint).string(),
                                     "--set",    fmt::format("train.steps={}", steps)};
    for (const std::string& word : old.OwnData()) more.push_back(word);
    const Json result = Resume(old, old.PsThatWrote(), more);
    CheckGoesToTheEnd(old, result);
    CheckBits(old, result);
    // A run that departs from a checkpoint by its path saves it as its own before its first step.
    CHECK(fs::exists(fs::path(directory) / fs::path(old.checkpoint).filename() / "manifest"));
  }
}

}  // namespace
}  // namespace dtrain::testing
