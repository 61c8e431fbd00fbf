// --from mpi under Open MPI's mpirun.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

constexpr const char* kMpirun = "/usr/bin/mpirun";

bool NoMpirun() {
  const bool missing = access(kMpirun, X_OK) != 0;
  if (missing) testing::Skip(fmt::format("there is no {} (scripts/install.sh --tests)", kMpirun));
  return missing;
}

// `mpirun -np ranks dtrain --config config more...`, on the loopback interface alone.
std::unique_ptr<Process> Mpirun(int ranks, const std::string& config, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"-np", std::to_string(ranks), "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) words.push_back("--allow-run-as-root");
  for (const char* word : {"--mca", "oob_tcp_if_include", "lo", "--mca", "btl_tcp_if_include", "lo"}) {
    words.push_back(word);
  }
  words.push_back(std::filesystem::current_path().string() + "/cmd/dtrain");
  for (const std::string& word :
       {std::string("--from"), std::string("mpi"), std::string("--config"), config}) {
    words.push_back(word);
  }
  words.insert(words.end(), more.begin(), more.end());
  return std::make_unique<Process>(words, Program{kMpirun, {"TMPDIR=" + NewDirectory()}});
}

TEST_CASE("mpi: ranks on one machine, with keys from one directory, end with the model of dtrain local") {
  if (NoMpirun()) return;
  const std::string directory = NewDirectory(), config = directory + "/job.yaml",
                    result = directory + "/result.json";
  WriteFile(config,
            DigitsJob("kind: softmax, inputs: 784", 1000, 200, "mode: sync, batch_size: 50, epochs: 3"));
  const Json local = RunLocal(config, {"--ps", "2", "--workers", "2"});
  REQUIRE(local.is_object());
  const std::string keys = NewKeys(config, {"--ps", "2", "--workers", "2"});
  const PortBlock ports({"127.0.0.1"}, 4, 10000, 10, 2000);
  const auto run = Mpirun(4, config,
                          {"--ps", "2", "--base-port", std::to_string(ports.first()), "--result", result,
                           "--set", "security.keys=" + keys});
  const int code = RunToEnd(*run);
  const std::string said = run->standard_error();
  CAPTURE(said);
  CHECK(code == 0);
  CHECK(Contains(said, "rank 3 of 4 of mpirun"));
  CHECK(Contains(said, fmt::format(":{} with keys\n", ports.first())));
  const Json ended = ReadResult(result);
  REQUIRE(ended.is_object());
  CHECK(ended.at("status") == "done");
  CHECK(ended.at("model_crc") == local.at("model_crc"));
}

TEST_CASE(
    "mpi: rows from standard input, which goes to rank 0 alone, are refused at once and with the remedy") {
  if (NoMpirun()) return;
  const std::string config = NewDirectory() + "/job.yaml";
  WriteFile(config,
            "model: {kind: logistic, inputs: 2}\n"
            "data: {train: {format: csv, path: \"-\", label: y}}\ntrain: {steps: 10}\n");
  const auto run = Mpirun(2, config, {"--ps", "1"});
  CHECK(RunToEnd(*run) == 2);
  CHECK(Contains(run->standard_error(),
                 "data.train.path = -; standard input, which mpirun gives to rank 0 alone"));
  CHECK(Contains(run->standard_error(), "exec:cat FILE"));
}

}  // namespace
}  // namespace dtrain::testing
