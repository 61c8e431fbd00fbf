// Workers whose shares of the data differ a hundredfold: who runs out leaves, and the others finish theirs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

constexpr int kBatch = 4;

// A table of its own for each worker, of so many batches.
std::string WriteTable(const std::string& path, int batches) {
  std::string text = "x,y\n";
  for (int i = 0; i < batches * kBatch; ++i) text += fmt::format("{},{}\n", i % 7, 2 * (i % 7) + 10);
  WriteFile(path, text);
  return path;
}

std::string Job(const std::string& mode) {
  return "model: {kind: linear, inputs: 1}\n"
         "data: {train: {format: csv, path: none.csv, label: y}, split: full}\n" +
         fmt::format("train: {{mode: {}, batch_size: {}, epochs: 1}}\n", mode, kBatch);
}

void CheckUneven(const std::string& mode, int64_t global_steps) {
  CAPTURE(mode);
  const Cluster cluster(2, 2, Job(mode));
  const std::string result = cluster.directory() + "/result.json";
  std::vector<std::unique_ptr<Process>> tasks;
  for (int i = 0; i < 2; ++i) tasks.push_back(cluster.Start("ps", i));
  for (int i = 0; i < 2; ++i) {
    const std::string table =
        WriteTable(fmt::format("{}/{}.csv", cluster.directory(), i), i == 0 ? 10 : 1000);
    std::vector<std::string> arguments = {"--set", "data.train.path=" + table};
    if (i == 1) arguments.insert(arguments.end(), {"--result", result});
    tasks.push_back(cluster.Start("worker", i, arguments));
  }
  for (const auto& task : tasks) {
    const int code = RunToEnd(*task);
    CAPTURE(task->standard_error());
    CHECK(code == 0);
  }
  const Json end = ReadResult(result);
  CHECK(end["status"] == "done");
  CHECK(end["local_steps"] == std::vector<int64_t>{10, 1000});
  CHECK(end["global_step"] == global_steps);
}

TEST_CASE("uneven: a worker with 10 batches and one with 1000 both end with 0, in every mode") {
  CheckUneven("async", 1010);
  CheckUneven("ssp", 1010);
  CheckUneven("sync", 1000);  // ten rounds of both, the rest of one
}

}  // namespace
}  // namespace dtrain::testing
