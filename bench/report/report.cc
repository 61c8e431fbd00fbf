// The report of bench/run.sh: runs dtrain and its limits by turns, prints a table and writes JSON.
// docs/performance.md explains each row.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "bench/report/process.h"
#include "bench/report/rows.h"

namespace dtrain::bench {
namespace {

struct Arguments {
  Settings settings;
  std::vector<std::string> only;  // prefixes of row names; empty: all rows
  std::string json;
  std::string directory;
  double load = Load();
};

void AddFlags(CLI::App& app, Arguments* arguments) {
  Settings& settings = arguments->settings;
  app.add_option("--rounds", settings.rounds, "how often each side runs")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", settings.seconds, "how long one side of a round is to take")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--only", arguments->only, "rows whose name begins so; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--beside", settings.beside, "another dtrain, to run by turns in place of the limits");
  app.add_option("--json", arguments->json, "a file for all values");
  app.add_option("--directory", arguments->directory, "what a relative path begins at; left out: here");
  app.add_option("--load", arguments->load, "the machine's load before the build; left out: that of now");
  app.add_option("--data", settings.data, "the directory with mnist/; left out: digits are drawn instead");
}

// Returns Bazel's directory of binaries, in which this program is bench/report/report.
std::string BinaryDirectory() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().parent_path();
}

std::vector<Case> AllCases(const Settings& settings) {
  std::vector<Case> all;
  for (const auto& some :
       {TrainingCases, SparseCases, StreamCases, FootprintCases, CheckpointCases, KernelCases, AttackCases}) {
    for (Case& one : some(settings)) all.push_back(std::move(one));
  }
  return all;
}

// Removes the cases that run no dtrain as a user does, and tells their rows.
void KeepRuns(const std::vector<std::string>& only, std::vector<Case>* cases) {
  std::vector<std::string> names;
  const auto kept =
      std::stable_partition(cases->begin(), cases->end(), [](const Case& one) { return one.takes_beside; });
  for (auto one = kept; one != cases->end(); ++one) {
    std::copy_if(one->rows.begin(), one->rows.end(), std::back_inserter(names),
                 [&](const std::string& name) { return IsChosen(name, only); });
  }
  cases->erase(kept, cases->end());
  if (names.empty()) return;
  fmt::print(stderr, "left out, as --beside takes whole runs of dtrain alone: {}\n", fmt::join(names, ", "));
}

int Report(const Arguments& arguments) {
  const Settings& settings = arguments.settings;
  std::vector<Case> cases = Choose(AllCases(settings), arguments.only);
  std::string machine = DescribeMachine(arguments.load);
  if (!settings.beside.empty()) {
    KeepRuns(arguments.only, &cases);
    machine += fmt::format("; beside {} in place of the limits", settings.beside);
  }
  fmt::print("{}\nMedians of {} rounds.{}\n\n", machine, settings.rounds,
             settings.data.empty() ? " MNIST is not there: drawn digits of the same number and size." : "");
  PrintTableHead(settings.beside.empty() ? "limit" : "beside");
  const Measured measured = MeasureAll(cases, arguments.only);
  if (!arguments.json.empty()) {
    const std::filesystem::path path = std::filesystem::path(arguments.directory) / arguments.json;
    WriteFileAtomically(path, ReportJson(machine, settings.rounds, measured.rows));
  }
  // An older program need not know all jobs, but it is to know one.
  const bool comparable = measured.lacking == 0 || !measured.rows.empty();
  return measured.failed == 0 && comparable ? 0 : 1;
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) {
  dtrain::bench::Arguments arguments;
  CLI::App app("Measures dtrain beside its limits");
  dtrain::bench::AddFlags(app, &arguments);
  CLI11_PARSE(app, argc, argv);
  try {
    const dtrain::bench::Scratch scratch;
    arguments.settings.scratch = scratch.path();
    arguments.settings.bin = dtrain::bench::BinaryDirectory();
    std::string& beside = arguments.settings.beside;
    if (!beside.empty()) beside = std::filesystem::path(arguments.directory) / beside;
    return dtrain::bench::Report(arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "report: {}\n", error.what());
    return 1;
  }
}
