// Files and environments made to take all memory: each is refused in one clear line, with little memory.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// Sanitizers take address space without end.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// Runs dtrain with 1 GiB of address space.
Done RunInLittleSpace(const std::vector<std::string>& arguments, const Program& program = {}) {
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit lower{rlim_t{1} << 30, before.rlim_max};
  setrlimit(RLIMIT_AS, &lower);
  Process process(arguments, program);
  setrlimit(RLIMIT_AS, &before);
  const int code = RunToEnd(process);
  return {code, process.standard_output(), process.standard_error()};
}

// `says`: what the line of the error names.
void CheckRefused(const Done& done, const std::string& says) {
  const std::string error = done.error.substr(0, 2000);
  CAPTURE(error);
  CHECK(done.code == 2);
  CHECK(done.error.size() < 2000);
  CHECK(Contains(done.error, says));
  CHECK_FALSE(Contains(done.error, "out of memory"));
}

TEST_CASE("attack: a YAML file whose aliases multiply a long text is refused") {
  std::string text = "a: &a \"" + std::string(600000, 'x') + "\"\nb: [";
  for (int i = 0; i < 90000; ++i) text += "*a,";
  const std::string path = NewDirectory() + "/bomb.yaml";
  WriteFile(path, text + "]\n");
  CheckRefused(RunInLittleSpace({"check", "--config", path}), "bomb.yaml");
}

TEST_CASE("attack: a YAML file whose anchors hold each other's copies is refused") {
  std::string text = "a0: &a0 [" + std::string(1000, 'x') + "]\n";
  for (int i = 1; i < 24; ++i) text += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}]\n", i, i - 1);
  const std::string path = NewDirectory() + "/nested.yaml";
  WriteFile(path, text);
  CheckRefused(RunInLittleSpace({"check", "--config", path}), "nested.yaml");
}

TEST_CASE("attack: a CSV file of nothing but commas is refused") {
  const std::string directory = NewDirectory();
  WriteFile(directory + "/commas.csv", std::string(60000000, ','));
  WriteFile(directory + "/job.yaml",
            "model: {kind: linear, inputs: 2}\n"
            "data: {train: {format: csv, path: commas.csv, label: y}}\n"
            "train: {batch_size: 8, steps: 9}\n");
  CheckRefused(RunInLittleSpace({"check", "--config", directory + "/job.yaml"}), "commas.csv");
}

TEST_CASE("attack: a list of hosts of Slurm that names more than any cluster has is refused") {
  std::string hosts = "n[0";
  while (hosts.size() < 52000) hosts += ",0-9999";
  hosts += "]";
  const std::string config = NewDirectory() + "/job.yaml";
  WriteFile(config, LinearJob(9));
  Program program;
  program.environment = {"SLURM_JOB_ID=17",
                         "SLURM_STEP_ID=0",
                         "SLURM_PROCID=0",
                         "SLURM_NTASKS=2",
                         "SLURM_STEP_NUM_TASKS=2",
                         "SLURM_JOB_NODELIST=" + hosts,
                         "SLURM_STEP_NODELIST=" + hosts,
                         "SLURM_STEP_TASKS_PER_NODE=2"};
  CheckRefused(RunInLittleSpace({"check", "--config", config, "--from", "slurm", "--ps", "1"}, program),
               "NODELIST");
}

#endif

}  // namespace
}  // namespace dtrain::testing
