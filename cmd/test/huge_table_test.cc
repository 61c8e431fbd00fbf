// A table of 2^28 rows, few of them touched: every command takes the memory and time of these few. A binary
// of its own, because the largest child of this process is what is measured.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

constexpr int64_t kInputs = (int64_t{1} << 28) - 1;

// `count` distinct features, 20 in a row.
std::string Rows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    if (i % 20 == 0) text += i % 3 == 0 ? "\n1" : "\n0";
    text += fmt::format(" {}:1", 1 + static_cast<int64_t>(i) * 2654435761 % kInputs);
  }
  return text.substr(1) + "\n";
}

int64_t PeakMiB() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_maxrss / 1024;
}

int64_t BytesOf(const std::string& directory) {
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    bytes += static_cast<int64_t>(file.file_size());
  }
  return bytes;
}

TEST_CASE("huge table: of 2^28 rows, 40,000 touched, each command takes less than 200 MiB") {
  const LocalJob job(fmt::format(
      "model: {{kind: logistic, inputs: {}}}\n"
      "data: {{train: {{format: libsvm, path: rows.txt}}, test: {{format: libsvm, path: rows.txt}}}}\n"
      "checkpoint: {{dir: ckpt}}\n"
      "train: {{mode: sync, batch_size: 50, epochs: 2, optimizer: {{kind: adagrad, learning_rate: 0.1}}}}\n",
      kInputs));
  WriteFile(job.directory + "/rows.txt", Rows(40000));
  const std::string checkpoints = job.directory + "/ckpt", rows = job.directory + "/rows.txt";
  const Json result =
      RunLocal(job.config, {"--ps", "1", "--workers", "1", "--set", "checkpoint.dir=" + checkpoints});
  REQUIRE(result.is_object());
  CHECK(BytesOf(result["checkpoint"].get<std::string>()) < 2 << 20);
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"check", "--config", job.config},
           {"plan", "--config", job.config},
           {"inspect", checkpoints},
           {"eval", checkpoints},
           {"predict", checkpoints, "--data", rows, "--out", job.directory + "/predictions.csv"},
           {"export", checkpoints, "--out", job.directory + "/model.tsv"},
           {"export", checkpoints, "--out", job.directory + "/model.safetensors"}}) {
    CAPTURE(command[0]);
    const Done done = Run(command);
    CAPTURE(done.error);
    CHECK(done.code == 0);
  }
  CHECK(Contains(FileContent(job.directory + "/model.tsv"), fmt::format("\n{}\tbias\t", kInputs)));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(PeakMiB() < 200);
#endif
}

TEST_CASE("huge table: 2^32 rows over 4 ps start on a machine that could not hold them") {
  const LocalJob job(
      "model: {kind: logistic, inputs: 4294967295}\n"
      "data: {train: {format: libsvm, path: rows.txt}}\n"
      "train: {batch_size: 50, steps: 5, optimizer: {kind: adam, learning_rate: 0.1}}\n");
  WriteFile(job.directory + "/rows.txt", Rows(2000));
  const Json result = RunLocal(job.config, {"--ps", "4", "--workers", "1"});
  CHECK(result.is_object());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(PeakMiB() < 200);
#endif
}

}  // namespace
}  // namespace dtrain::testing
