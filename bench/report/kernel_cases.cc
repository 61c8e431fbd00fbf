// Operations, messages and the reading of tables, measured by the programs that use Google Benchmark.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "bench/report/process.h"
#include "bench/report/rows.h"

namespace dtrain::bench {
namespace {

constexpr double kNanosPerMicro = 1000;
constexpr double kKernelShare = 0.125;  // of the seconds of a job's turn

std::string Output(const Settings& settings, const std::string& program,
                   const std::vector<std::string>& flags) {
  std::vector<std::string> command = {settings.Program("bench/" + program)};
  command.insert(command.end(), flags.begin(), flags.end());
  return OutputOf(command, settings.scratch + "/" + program);
}

// Returns the NAMEs of the program's lines NAME/dtrain and NAME/limit, each once, in order.
std::vector<std::string> BenchmarkNames(const Settings& settings, const std::string& program) {
  std::istringstream lines(Output(settings, program, {"--benchmark_list_tests=true"}));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find('/'));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

// Adds the values of each repetition of NAME/dtrain and NAME/limit, which were measured in a random order.
void AddRun(const nlohmann::json& run, Row* row) {
  if (run.at("run_type") != "iteration") return;
  const bool is_limit = run.at("name").get<std::string>().find("/limit") != std::string::npos;
  std::vector<double>& values = is_limit ? row->limit : row->dtrain;
  const size_t repetition = run.at("repetition_index");
  values.resize(std::max(values.size(), repetition + 1));
  values[repetition] = run.at("cpu_time").get<double>() / kNanosPerMicro;
}

// Measures both sides in one run of the program, so that their repetitions are close in time.
std::vector<Row> MeasureBenchmark(const Settings& settings, const std::string& program, Row row) {
  const auto report = nlohmann::json::parse(
      Output(settings, program,
             {"--benchmark_format=json", fmt::format("--benchmark_filter=^{}/", row.what),
              "--benchmark_enable_random_interleaving=true",
              fmt::format("--benchmark_min_time={:.3f}", kKernelShare * settings.seconds),
              fmt::format("--benchmark_repetitions={}", settings.rounds)}));
  for (const auto& run : report.at("benchmarks")) AddRun(run, &row);
  return {row};
}

}  // namespace

std::vector<Case> KernelCases(const Settings& settings) {
  std::vector<Case> cases;
  const std::pair<std::string, std::string> programs[] = {
      {"kernel", "kernels_bench"}, {"message", "messages_bench"}, {"reading", "reading_bench"}};
  for (const auto& [prefix, program] : programs) {
    for (const std::string& name : BenchmarkNames(settings, program)) {
      const Row row = {prefix + "_" + name, name, "us", "", true, {}, {}, {}, {}};
      cases.push_back({{row.name}, [=, &settings, program = program] {
                         return MeasureBenchmark(settings, program, row);
                       }});
    }
  }
  return cases;
}

}  // namespace dtrain::bench
