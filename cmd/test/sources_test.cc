// Sources of data with the real binary: lists, patterns, packed files, commands; whose commands run.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"
#include "cmd/testing/python.h"
#include "trainer/input/data_test_util.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeader = "a,b,y\n";
constexpr const char* kFirst = "1,2,1\n-3,-1,0\n2,2,1\n";
constexpr const char* kLast = "-1,-2,0\n4,1,1\n";

// A logistic job on `train`, the text of data.train.path as YAML.
struct SourceJob {
  std::string directory = NewDirectory();
  std::string config = directory + "/job.yaml";

  SourceJob() {
    WriteFile(Path("all.csv"), std::string(kHeader) + kFirst + kLast);
    WriteFile(Path("part-1.csv"), std::string(kHeader) + kFirst);
    WriteFile(Path("part-2.csv"), std::string(kHeader) + kLast);
    WriteFile(config,
              "model: {kind: logistic, inputs: 2}\n"
              "data: {train: {format: csv, path: all.csv, label: y}, test: {format: csv, path: all.csv, "
              "label: y}}\n"
              "train: {batch_size: 2, epochs: 5, mode: sync}\n");
  }
  std::string Path(const std::string& name) const { return directory + "/" + name; }
  std::vector<std::string> Local(const std::string& train, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {
        "local",    "--config",         config, "--workers", "1", "--set", "data.train.path=" + train,
        "--result", Path("result.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::string Crc(const std::string& train) const {
    const Done done = Run(Local(train));
    CAPTURE(train);
    CAPTURE(done.error);
    CHECK(done.code == 0);
    return done.code == 0 ? ReadResult(Path("result.json"))["model_crc"].get<std::string>() : "";
  }
};

TEST_CASE("sources: standard input is read by the only worker of dtrain local") {
  const SourceJob job;
  const std::string expected = job.Crc(job.Path("all.csv"));
  for (const char* more : {"", "--in-process"}) {
    const std::string result = NewDirectory() + "/result.json";
    const std::string told =
        OutputOf(fmt::format("cmd/dtrain local --run none --config {} --workers 1 --set data.train.path=- "
                             "--result {} {} <{} 2>&1; true",
                             job.config, result, more, job.Path("all.csv")));
    CAPTURE(told);
    CHECK(ReadResult(result)["model_crc"] == expected);
  }
}

TEST_CASE("sources: one table gives the same weights from a file, a list, a pattern, packed, and a command") {
  const SourceJob job;
  const std::string expected = job.Crc(job.Path("all.csv"));
  CHECK(job.Crc(fmt::format("[{}, {}]", job.Path("part-1.csv"), job.Path("part-2.csv"))) == expected);
  CHECK(job.Crc(job.Path("part-*.csv")) == expected);
  CHECK(job.Crc("exec:cat " + job.Path("all.csv")) == expected);
  CHECK(job.Crc("exec:gzip -c " + job.Path("all.csv")) == expected);
}

TEST_CASE("sources: packed images are unpacked once into a cache, and train as plain ones that are mapped") {
  const std::string directory = NewDirectory(), config = directory + "/job.yaml";
  std::vector<uint8_t> labels(60);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<uint8_t>(i % 3);
  WriteFile(directory + "/images", IdxImageContent(60, 2, 3));
  WriteFile(directory + "/labels", IdxLabelContent(labels));
  WriteFile(config,
            "model: {kind: softmax, outputs: 3}\n"
            "data: {train: {format: idx, images: images, labels: labels}, cache: none, cache_dir: cache}\n"
            "train: {batch_size: 8, epochs: 5, mode: sync}\n");
  const auto crc = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--workers", "2", "--set",
                                          "data.cache_dir=" + directory + "/cache"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json result = RunLocal(config, arguments);
    return result.is_object() ? result["model_crc"].get<std::string>() : "";
  };
  const std::string expected = crc({});
  REQUIRE(!expected.empty());
  REQUIRE(std::system(("gzip " + directory + "/images").c_str()) == 0);
  const std::string packed = "data.train.images=" + directory + "/images.gz";
  CHECK(crc({"--set", packed, "--set", "data.cache=file"}) == expected);
  CHECK(crc({"--set", packed, "--set", "data.cache=file", "--set", "data.split=feed"}) == expected);
  const Done refused = Run({"local", "--config", config, "--workers", "1", "--set", packed});
  CHECK(refused.code == 2);
  CHECK(Contains(refused.error + refused.output, "Set data.cache: file, which unpacks it once"));
}

TEST_CASE("sources: one set of images gives the same weights and figures from a file, a list and a pattern") {
  const std::string directory = NewDirectory(), config = directory + "/job.yaml";
  const std::string images = IdxImageContent(60, 2, 3);
  std::vector<uint8_t> labels(60);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<uint8_t>(i * 6 % 256 / 90);
  // Writes some of the rows. Returns the path of their images.
  const auto write = [&](const std::string& name, size_t first, uint32_t count) {
    const std::string header = IdxImageContent(count, 2, 3).substr(0, 16);
    const std::string path = directory + "/" + name + "-images-idx3";
    WriteFile(path, header + images.substr(16 + first * 6, size_t{6} * count));
    WriteFile(directory + "/" + name + "-labels-idx1",
              IdxLabelContent({labels.begin() + first, labels.begin() + first + count}));
    return path;
  };
  const std::string all = write("all", 0, 60), one = write("part-1", 0, 23), two = write("part-2", 23, 37);
  WriteFile(config,
            "model: {kind: softmax, outputs: 3}\n"
            "data: {train: {format: idx, images: all-images-idx3, labels: all-labels-idx1}}\n"
            "train: {batch_size: 8, epochs: 5, mode: sync}\n");
  // `images_text`: of data.train.images, as YAML.
  const auto crc = [&](const std::string& images_text, const std::string& more) {
    std::string labels_text = images_text;
    for (size_t at; (at = labels_text.find("images-idx3")) != std::string::npos;)
      labels_text.replace(at, 11, "labels-idx1");
    const Json result = RunLocal(config, {"--workers", "2", "--set", "data.train.images=" + images_text,
                                          "--set", "data.train.labels=" + labels_text, "--set", more});
    REQUIRE(!result.is_null());
    return result["model_crc"].get<std::string>();
  };
  const std::string list = fmt::format("[{}, {}]", one, two), pattern = directory + "/part-*-images-idx3";
  const std::string expected = crc(all, "data.cache=memory"), checkpoint = directory + "/ckpt";
  CHECK(crc(pattern, "data.cache=memory") == expected);
  CHECK(crc(list, "checkpoint.dir=" + checkpoint) == expected);
  CHECK(crc(list, "data.cache=none") == crc(pattern, "data.cache=none"));
  const Done whole = Run({"eval", checkpoint, "--data", all});
  CAPTURE(whole.error);
  CHECK(whole.code == 0);
  CHECK(Run({"eval", checkpoint, "--data", one, "--data", two}).output == whole.output);
  CHECK(Run({"eval", checkpoint, "--data", pattern}).output == whole.output);
}

TEST_CASE("sources: a command that fails behind its rows ends the run with its error") {
  const SourceJob job;
  const Done done = Run(job.Local("exec:cat " + job.Path("all.csv") + "; echo disk is gone >&2; exit 3"));
  CAPTURE(done.error);
  CHECK(done.code == 2);
  CHECK(Contains(done.error, "ended with exit code 3: disk is gone. Rows may be missing"));
}

TEST_CASE("sources: a command dies with a task that is killed") {
  const SourceJob job;
  const std::string pid_file = job.Path("pid");
  Process local(job.Local("exec:echo $$ > " + pid_file + ".new; mv " + pid_file + ".new " + pid_file +
                          "; exec sleep 1000"));
  const TimePoint begin = Clock::now();
  while (!fs::exists(pid_file) && SecondsSince(begin) < 60) usleep(1000);
  REQUIRE(fs::exists(pid_file));
  const pid_t pid = std::stoi(FileContent(pid_file));
  CHECK(kill(pid, 0) == 0);
  local.Signal(SIGKILL);
  CHECK(local.WaitForEnd());
  while (kill(pid, 0) == 0 && SecondsSince(begin) < 120) usleep(1000);
  CHECK(kill(pid, 0) != 0);
}

TEST_CASE(
    "sources: a command in a checkpoint's config never runs, whatever the command; the user's own does") {
  const SourceJob job;
  const std::string marker = job.Path("marker"), checkpoints = job.Path("ckpt");
  const std::string command = "exec:touch " + marker + "; cat " + job.Path("all.csv");
  const Done trained = Run(job.Local(command, {"--set", "data.test.path=" + command, "--set", "eval.on=test",
                                               "--set", "checkpoint.dir=" + checkpoints}));
  CAPTURE(trained.error);
  REQUIRE(trained.code == 0);
  REQUIRE(fs::remove(marker));
  const std::string all = job.Path("all.csv");
  const auto code = [&](std::vector<std::string> arguments) {
    const Done done = Run(arguments);
    CAPTURE(done.error);
    CHECK((done.code == 0 || Contains(done.error, "only you can name one")));
    return done.code;
  };
  CHECK(code({"eval", checkpoints}) == 2);
  CHECK(code({"eval", checkpoints, "--set", "eval.on=validation", "--set", "data.validation=2"}) == 2);
  CHECK(code({"eval", checkpoints, "--data", all}) == 0);
  CHECK(code({"predict", checkpoints, "--data", all}) == 0);
  CHECK(code({"export", checkpoints, "--out", job.Path("model.npz")}) == 0);
  CHECK(code({"inspect", checkpoints}) == 0);
  CHECK(code({"eval", checkpoints, "--dump-config"}) == 0);
  CHECK_FALSE(fs::exists(marker));
  CHECK(code({"eval", checkpoints, "--set", "data.test.path=" + command}) == 0);
  CHECK(fs::remove(marker));
  CHECK(code({"predict", checkpoints, "--data", command}) == 0);
  CHECK(fs::remove(marker));
}

}  // namespace
}  // namespace dtrain::testing
