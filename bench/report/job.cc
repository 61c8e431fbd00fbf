#include "bench/report/job.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <stdexcept>

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

const char* WireText(Wire wire) {
  if (wire == Wire::kLocal) return "";
  return wire == Wire::kTcp ? ", TCP" : ", TCP with keys";
}

std::string Job::what() const {
  std::string text = fmt::format("{}.yaml, 1 ps + {} worker{}", config, workers, workers == 1 ? "" : "s");
  for (const std::string& set : sets) text += ", " + set;
  if (in_flight != 1) text += fmt::format(", in_flight {}", in_flight);
  return text + WireText(wire);
}

int64_t ParameterCount(const std::vector<int64_t>& layers) {
  int64_t count = 0;
  for (size_t i = 0; i + 1 < layers.size(); ++i) count += (layers[i] + 1) * layers[i + 1];
  return count;
}

const std::vector<Job>& Jobs() {
  static const std::vector<Job> jobs = {
      {"softmax", "mnist_softmax", 3, {784, 10}, 1, 4000, "0.75, 7200 steps/s", "0.95"},
      {"linear", "linear_regression", 2, {}, 1, 8000, "1.2", "0.9"},
      {"linear_in_flight_16", "linear_regression", 2, {}, 16, 60000, "0.9", "0.7"},
      {"mlp", "mnist_mlp", 3, {784, 100, 10}, 1, 800, "0.7", "0.95"},
      {"sync", "mnist_softmax_sync", 2, {784, 10}, 1, 2500, "0.7, 5000 rounds/s", "0.95", true},
  };
  return jobs;
}

const Job& FindJob(const std::string& name) {
  for (const Job& job : Jobs()) {
    if (job.name == name) return job;
  }
  throw std::runtime_error("no job is called " + name);
}

Job OverTcp(Job job) {
  job.name = "tcp_" + job.name;
  job.to_reach = job.tcp_to_reach;
  job.wire = Wire::kTcp;
  return job;
}

std::vector<std::string> JobFlags(const Settings& settings, const Job& job, int64_t steps) {
  std::vector<std::string> flags = {"--config", ConfigPath(job)};
  Set(&flags, "train.epochs=null");
  Set(&flags, fmt::format("train.steps={}", steps));
  Set(&flags, fmt::format("train.in_flight={}", job.in_flight));
  for (const std::string& set : job.sets) Set(&flags, set);
  if (!job.layers.empty()) AddImages(settings, &flags);
  const std::string text = ReadFile(ConfigPath(job));
  for (const char* output : {"summary", "checkpoint"}) {
    if (text.find(fmt::format("\n{}:", output)) == std::string::npos) continue;
    Set(&flags, fmt::format("{}.dir=null", output));
  }
  return flags;
}

namespace {

// Makes the keys of a run with these flags, and adds them.
void AddKeys(const Settings& settings, const std::string& program, int64_t workers,
             std::vector<std::string>* flags) {
  const std::string directory = settings.scratch + "/keys";
  std::filesystem::remove_all(directory);
  std::vector<std::string> keygen = {program, "keygen", "--ps", "1", "--workers", std::to_string(workers),
                                     "--out", directory};
  keygen.insert(keygen.end(), flags->begin(), flags->end());
  OutputOf(keygen, directory);
  Set(flags, "security.keys=" + directory);
}

// Whether the program has --run; a program without it makes no directory.
bool HasRunFlag(const Settings& settings, const std::string& program) {
  const std::string help = OutputOf({program, "local", "--help"}, settings.scratch + "/help");
  return help.find("--run ") != std::string::npos;
}

}  // namespace

Tasks StartTasks(const Settings& settings, std::vector<std::string> command, int64_t workers) {
  std::vector<std::string> names;  // workers open no ports
  for (int64_t i = 1; i <= workers; ++i) names.push_back(fmt::format("\"localhost:{}\"", i));
  Set(&command, fmt::format("cluster.ps=[\"127.0.0.1:{}\"]", FreePort()));
  Set(&command, fmt::format("cluster.worker=[{}]", fmt::join(names, ", ")));
  const auto start = [&](const char* role, int64_t index) {
    const std::string path = fmt::format("{}/{}-{}", settings.scratch, role, index);
    std::vector<std::string> task = command;
    task.insert(task.end(), {"--role", role, "--index", std::to_string(index), "--result", path + ".json"});
    return std::make_unique<Process>(task, path);
  };
  Tasks tasks{start("ps", 0), {}};
  for (int64_t i = 0; i < workers; ++i) tasks.workers.push_back(start("worker", i));
  return tasks;
}

JobResult RunDtrain(const Settings& settings, const std::string& program, Wire wire, int64_t workers,
                    std::vector<std::string> flags) {
  std::string path = settings.scratch + "/worker-0";
  if (wire == Wire::kTcpWithKeys) AddKeys(settings, program, workers, &flags);
  if (HasRunFlag(settings, program)) flags.insert(flags.end(), {"--run", "none"});
  if (wire == Wire::kLocal) {
    path = settings.scratch + "/local";
    flags.insert(flags.begin(), {program, "local", "--result", path + ".json"});
    OutputOf(flags, path);
  } else {
    flags.insert(flags.begin(), program);
    const Tasks tasks = StartTasks(settings, std::move(flags), workers);
    for (const auto& worker : tasks.workers) worker->Wait();
    tasks.ps->Wait();
  }
  const auto result = nlohmann::json::parse(ReadFile(path + ".json"));
  return {result.at("steps_per_s"), result.at("startup_s"), result.at("bytes_sent"),
          result.at("global_step")};
}

JobResult RunJob(const Settings& settings, const std::string& program, const Job& job, int64_t steps,
                 const std::vector<std::string>& more) {
  std::vector<std::string> flags = JobFlags(settings, job, steps);
  Set(&flags, "eval.at_end=false");
  flags.insert(flags.end(), more.begin(), more.end());
  return RunDtrain(settings, program, job.wire, job.workers, std::move(flags));
}

Exchanged RunExchange(const Settings& settings, const std::string& program,
                      const std::vector<std::string>& flags) {
  std::vector<std::string> command = {settings.Program(program)};
  command.insert(command.end(), flags.begin(), flags.end());
  const auto result = nlohmann::json::parse(OutputOf(command, settings.scratch + "/exchange"));
  return {result.at("exchanges_per_s"), result.at("bytes_per_exchange")};
}

}  // namespace dtrain::bench
