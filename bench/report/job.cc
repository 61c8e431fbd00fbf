#include "bench/report/job.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>

#include "bench/report/process.h"
#include "net/codec.h"

namespace dtrain::bench {
namespace {

void Set(std::vector<std::string>* flags, const std::string& key_and_value) {
  flags->push_back("--set");
  flags->push_back(key_and_value);
}

std::string ConfigPath(const Job& job) { return fmt::format("configs/{}.yaml", job.config); }

// Adds MNIST if it is there, or drawn digits of the same number and size.
void AddImages(const Settings& settings, std::vector<std::string>* flags) {
  for (const auto& [set, files, rows] :
       {std::tuple("train", "train", 60000), std::tuple("test", "t10k", 10000)}) {
    for (const auto& [key, kind] : {std::pair("images", "images-idx3"), std::pair("labels", "labels-idx1")}) {
      const std::string path =
          settings.data.empty() ? "null" : fmt::format("{}/mnist/{}-{}-ubyte.gz", settings.data, files, kind);
      Set(flags, fmt::format("data.{}.{}={}", set, key, path));
    }
    if (!settings.data.empty()) continue;
    Set(flags, fmt::format("data.{}={{format: synthetic, name: digits, rows: {}}}", set, rows));
  }
}

}  // namespace

std::string Job::what() const {
  const std::string text = fmt::format("{}.yaml, 1 ps + {} workers", config, workers);
  return in_flight == 1 ? text : fmt::format("{}, in_flight {}", text, in_flight);
}

int64_t ParameterCount(const std::vector<int64_t>& layers) {
  int64_t count = 0;
  for (size_t i = 0; i + 1 < layers.size(); ++i) count += (layers[i] + 1) * layers[i + 1];
  return count;
}

int64_t Job::block() const {
  const int64_t parameters = ParameterCount(layers);
  return static_cast<size_t>(parameters) * sizeof(float) > net::kInlineBytes ? parameters : 0;
}

const std::vector<Job>& Jobs() {
  static const std::vector<Job> jobs = {
      {"softmax", "mnist_softmax", 3, {784, 10}, 1, 4000, "0.75, 7200 steps/s"},
      {"linear", "linear_regression", 2, {}, 1, 8000, "1.2"},
      {"linear_in_flight_16", "linear_regression", 2, {}, 16, 60000, "0.9"},
      {"mlp", "mnist_mlp", 3, {784, 100, 10}, 1, 800, "0.7"},
      {"sync", "mnist_softmax_sync", 2, {784, 10}, 1, 2500, "0.7, 5000 rounds/s", true},
  };
  return jobs;
}

const Job& FindJob(const std::string& name) {
  for (const Job& job : Jobs()) {
    if (job.name == name) return job;
  }
  throw std::runtime_error("no job is called " + name);
}

std::vector<std::string> JobFlags(const Settings& settings, const Job& job, int64_t steps) {
  std::vector<std::string> flags = {"--config", ConfigPath(job)};
  Set(&flags, "train.epochs=null");
  Set(&flags, fmt::format("train.steps={}", steps));
  Set(&flags, fmt::format("train.in_flight={}", job.in_flight));
  if (!job.layers.empty()) AddImages(settings, &flags);
  const std::string text = ReadFile(ConfigPath(job));
  for (const char* output : {"summary", "checkpoint"}) {
    if (text.find(fmt::format("\n{}:", output)) == std::string::npos) continue;
    Set(&flags, fmt::format("{}.dir=null", output));
  }
  return flags;
}

JobResult RunJob(const Settings& settings, const Job& job, int64_t steps,
                 const std::vector<std::string>& more, const char* by) {
  const std::string path = settings.scratch + "/" + job.name;
  std::vector<std::string> command = {settings.Program("cmd/dtrain"), by};
  const std::vector<std::string> flags = JobFlags(settings, job, steps);
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), more.begin(), more.end());
  Set(&command, "eval.at_end=false");
  Set(&command, "run.dir=none");
  command.insert(command.end(), {"--result", path + ".json"});
  OutputOf(command, path);
  const auto result = nlohmann::json::parse(ReadFile(path + ".json"));
  return {result.at("steps_per_s"), result.at("startup_s"), result.at("bytes_sent"),
          result.at("global_step")};
}

Exchanged RunExchange(const Settings& settings, const std::string& program,
                      const std::vector<std::string>& flags) {
  std::vector<std::string> command = {settings.Program(program)};
  command.insert(command.end(), flags.begin(), flags.end());
  const auto result = nlohmann::json::parse(OutputOf(command, settings.scratch + "/exchange"));
  return {result.at("exchanges_per_s"), result.at("bytes_per_exchange")};
}

}  // namespace dtrain::bench
