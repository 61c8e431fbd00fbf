// Sparse rows with the real binary: in memory, from files in each epoch, from a cache and through a pipe.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// Of rows of 20 features out of 5,000, in three files, one of them packed.
std::string Job(const std::string& path) {
  return fmt::format(
      "model: {{kind: logistic, inputs: 5000}}\n"
      "data: {{train: {{format: libsvm, path: \"{}\"}}, validation: 500}}\n"
      "eval: {{on: validation}}\n"
      "train: {{mode: sync, batch_size: 50, epochs: 2, optimizer: {{kind: adagrad, learning_rate: 0.1}}}}\n",
      path);
}

void WriteParts(const std::string& directory) {
  for (int part = 0; part < 3; ++part) {
    const Done made =
        Run({"synth", "libsvm", "--rows", "3000", "--first", fmt::format("{}", part * 3000), "--features",
             "20", "--width", "5000", "--out", fmt::format("{}/part-{}.txt", directory, part)});
    REQUIRE(made.code == 0);
  }
  REQUIRE(std::system(
              fmt::format("gzip {0}/part-2.txt && mv {0}/part-2.txt.gz {0}/part-2.txt", directory).c_str()) ==
          0);
}

TEST_CASE(
    "sparse data: a run learns from memory, from its files, a cache and a pipe, and a cache that is there "
    "changes no bit") {
  const LocalJob job(Job("part-*.txt"));
  WriteParts(job.directory);
  const auto run = [&](const std::string& cache, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--set", "data.cache=" + cache, "--workers", "2", "--in-process"});
    if (cache != "memory") more.insert(more.end(), {"--set", "data.shuffle_rows=1000"});
    if (cache == "file") more.insert(more.end(), {"--set", "data.cache_dir=" + job.directory + "/cache"});
    const Json result = RunLocal(job.config, more);
    REQUIRE(result.is_object());
    CHECK(result["examples"].get<int64_t>() == 2 * 8500);
    CHECK(result["final_loss"].get<double>() < 0.65);
    return result["model_crc"].dump();
  };
  const std::string memory = run("memory"), none = run("none"), file = run("file");
  CHECK(run("memory") == memory);
  CHECK(run("none") == none);
  CHECK(run("file") == file);
  CHECK(memory != none);
}

TEST_CASE("sparse data: of one plain file a run reads the same order from it and from a cache") {
  const LocalJob job(Job("part-0.txt"));
  WriteParts(job.directory);
  std::vector<std::string> crcs;
  for (const std::string cache : {"none", "file"}) {
    const Json result = RunLocal(
        job.config, {"--set", "data.cache=" + cache, "--set", "data.shuffle_rows=1000", "--set",
                     "data.cache_dir=" + job.directory + "/cache", "--workers", "3", "--in-process"});
    REQUIRE(result.is_object());
    crcs.push_back(result["model_crc"].dump());
  }
  CHECK(crcs[0] == crcs[1]);
}

TEST_CASE("sparse data: rows of a pipe are learned from as they come") {
  const LocalJob job(fmt::format(
      "model: {{kind: logistic}}\n"
      "data: {{train: {{format: vw, path: \"exec:{} synth vw --rows 20000 --features 20 --width 5000\"}},\n"
      "  hash_bits: 14, cache: none, validation: 500}}\n"
      "eval: {{on: validation}}\n"
      "train: {{batch_size: 50, epochs: 1, optimizer: {{kind: adagrad, learning_rate: 0.1}}}}\n",
      std::filesystem::absolute(Program().path).string()));
  const Json result = RunLocal(job.config, {"--in-process"});
  REQUIRE(result.is_object());
  CHECK(result["global_step"].get<int64_t>() == 390);
  CHECK(result["final_loss"].get<double>() < 0.6);
}

TEST_CASE("sparse data: a row that cannot be read ends the run with its place, or is left out and counted") {
  const LocalJob job(Job("part-*.txt"));
  WriteParts(job.directory);
  WriteFile(job.directory + "/part-3.txt", "1 1:1\n-1 5001:1\n1 4:x\n");
  const Done stopped = Run({"local", "--config", job.config, "--in-process"});
  CHECK(stopped.code == 2);
  CHECK(Contains(stopped.error + stopped.output, "part-3.txt:2:4: feature 5001; must be 1 to 5000"));
  const Json result = RunLocal(job.config, {"--in-process", "--set", "data.bad_rows=skip"});
  REQUIRE(result.is_object());
  CHECK(result["workers"].at(0).at("rows_skipped") == 2);
}

}  // namespace
}  // namespace dtrain::testing
