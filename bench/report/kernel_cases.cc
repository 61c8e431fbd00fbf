// Operations and messages, as the programs under Google Benchmark measure them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/report/cases.h"
#include "bench/report/process.h"

namespace dtrain::bench {
namespace {

constexpr double kNanosPerMicro = 1000;

// The values of NAME/dtrain and NAME/limit by repetition; they were measured in a random order.
void AddRun(const nlohmann::json& run, Row* row) {
  const bool is_limit = run.at("name").get<std::string>().find("/limit") != std::string::npos;
  std::vector<double>& values = is_limit ? row->limit : row->dtrain;
  const size_t repetition = run.at("repetition_index");
  values.resize(std::max(values.size(), repetition + 1));
  values[repetition] = run.at("cpu_time").get<double>() / kNanosPerMicro;
}

// Rows in the order in which they were registered.
std::vector<Row> ParseBenchmarks(const std::string& prefix, const std::string& text) {
  std::map<int, Row> by_family;
  std::map<std::string, int> families;
  const auto report = nlohmann::json::parse(text);
  for (const auto& run : report.at("benchmarks")) {
    if (run.at("run_type") != "iteration") continue;
    const std::string full_name = run.at("name");
    const std::string name = full_name.substr(0, full_name.find('/'));
    const int family = families.emplace(name, run.at("family_index")).first->second;
    Row& row = by_family[family];
    if (row.name.empty()) row = {prefix + "_" + name, name, "us", "", true, {}, {}, {}, {}};
    AddRun(run, &row);
  }
  std::vector<Row> rows;
  for (auto& [family, row] : by_family) rows.push_back(std::move(row));
  return rows;
}

std::vector<Row> MeasureBenchmarks(const Settings& settings, const std::string& program,
                                   const std::string& prefix) {
  const std::vector<std::string> command = {settings.Program("bench/" + program), "--benchmark_format=json",
                                            "--benchmark_enable_random_interleaving=true",
                                            fmt::format("--benchmark_repetitions={}", settings.rounds)};
  return ParseBenchmarks(prefix, OutputOf(command, settings.scratch + "/" + program));
}

}  // namespace

std::vector<Case> KernelCases(const Settings& settings) {
  return {{"kernel", [&] { return MeasureBenchmarks(settings, "kernels_bench", "kernel"); }},
          {"message", [&] { return MeasureBenchmarks(settings, "messages_bench", "message"); }}};
}

}  // namespace dtrain::bench
