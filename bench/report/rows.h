// Rows of a report: what dtrain did in each round beside its limit in the same rounds; the cases that measure
// them, the choice of cases, the turns, and the table. docs/performance.md explains the columns. Thread: one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::bench {

// The median of an odd or even number of values, at least one.
double Median(std::vector<double> values);

struct Row {
  std::string name;  // for --only and the JSON
  std::string what;
  std::string unit;
  std::string to_reach;
  bool smaller_is_better = false;
  std::vector<double> dtrain;  // by round
  std::vector<double> limit;   // by round; empty: there is none
  // Headers and payloads of one exchange, both ways: shows that both sides moved the same.
  std::optional<double> dtrain_bytes;
  std::optional<double> limit_bytes;

  // dtrain by limit in each round, so that what slows a round down cancels out. 1 is the limit, less is
  // slower.
  std::vector<double> Ratios() const;
};

// Rows that are measured together. `measure` makes all of them.
struct Case {
  std::vector<std::string> rows;  // their names
  std::function<std::vector<Row>()> measure;
};

// What the report measures. Each case runs dtrain and its limit in turns, round by round. Many short turns:
// with few long ones, a machine that others use too is another one in the second half of a round. Cases keep
// a reference to the settings. They throw std::runtime_error where something cannot be run.
struct Settings {
  int rounds = 15;
  double seconds = 1.2;  // how long one side of a round is to take
  std::string bin;       // Bazel's directory of binaries
  std::string data;      // the directory with mnist/; empty: digits are drawn instead
  std::string scratch;   // a directory for what is written meanwhile

  std::string Program(const std::string& label) const { return bin + "/" + label; }
};

std::vector<Case> TrainingCases(const Settings& settings);    // global steps per second, and threads
std::vector<Case> StreamCases(const Settings& settings);      // many parameters
std::vector<Case> FootprintCases(const Settings& settings);   // start-up time and memory
std::vector<Case> CheckpointCases(const Settings& settings);  // 1 GiB of parameters saved while they train
std::vector<Case> KernelCases(const Settings& settings);      // operations and messages

// Whether --only chooses this row: `name` begins with one of `only`; every name does where there are none.
bool IsChosen(const std::string& name, const std::vector<std::string>& only);

// The cases that have a row to show. Throws std::runtime_error with all names where one of `only` chooses
// nothing.
std::vector<Case> Choose(const std::vector<Case>& cases, const std::vector<std::string>& only);

// Measures both sides of a row, each side once a round, A B B A A B: next to each other, so that what slows
// the machine down for a while meets both, and each first in turn, so that what grows or fades all the time
// favours neither.
void TakeTurns(int rounds, const std::function<void()>& dtrain, const std::function<void()>& limit);

// What MeasureAll() found.
struct Measured {
  std::vector<Row> rows;
  int failed = 0;  // cases that could not be run; standard error says why
};

// Measures the cases one after the other, and prints those of their rows that `only` chooses as they come.
Measured MeasureAll(const std::vector<Case>& cases, const std::vector<std::string>& only);

// The report as a Markdown table and as JSON. See docs/performance.md for what the columns mean.
void PrintTableHead();
void PrintRow(const Row& row);

// One object: the machine, the rounds and every row with the values of each round.
std::string ReportJson(const std::string& machine, int rounds, const std::vector<Row>& rows);

}  // namespace dtrain::bench
