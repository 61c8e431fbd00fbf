// Rows of a report: the values of dtrain and of its limit in the same rounds; the cases that measure them,
// the choice of cases, the turns, and the table. docs/performance.md explains the columns. Thread: one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::bench {

// Returns the median of at least one value.
double Median(std::vector<double> values);

struct Row {
  std::string name;  // for --only and the JSON
  std::string what;
  std::string unit;
  std::string to_reach;
  bool smaller_is_better = false;
  std::vector<double> dtrain;  // by round
  std::vector<double> limit;   // by round; empty: there is none
  // Headers and payloads of one exchange, both ways, to show that both sides moved the same bytes.
  std::optional<double> dtrain_bytes;
  std::optional<double> limit_bytes;

  // Returns dtrain / limit for each round, which cancels what slows a whole round down. 1 is as fast as the
  // limit; less is slower.
  std::vector<double> Ratios() const;
};

// Case: rows that are measured together. `measure` makes all of them.
struct Case {
  std::vector<std::string> rows;  // their names
  std::function<std::vector<Row>()> measure;
  bool takes_beside = false;  // measured by MeasureSides()
};

// Settings: what the report measures with. Each case runs dtrain and its limit by turns, in many short
// rounds: with few long ones, a shared machine may change within a round. Cases keep a reference to the
// settings. They throw std::runtime_error if something cannot be run.
struct Settings {
  int rounds = 15;
  double seconds = 1.2;  // the length of one side of a round
  std::string bin;       // Bazel's directory of binaries
  std::string data;      // the directory with mnist/; empty: drawn digits are used
  std::string scratch;   // a directory for temporary files
  std::string beside;    // another dtrain, which runs in place of the limits; empty: the limits run

  std::string Program(const std::string& label) const { return bin + "/" + label; }
};

std::vector<Case> TrainingCases(const Settings& settings);    // global steps per second, threads, and keys
std::vector<Case> SparseCases(const Settings& settings);      // rows of a table
std::vector<Case> StreamCases(const Settings& settings);      // many parameters
std::vector<Case> FootprintCases(const Settings& settings);   // start-up time and memory
std::vector<Case> CheckpointCases(const Settings& settings);  // 1 GiB of parameters saved while they train
std::vector<Case> KernelCases(const Settings& settings);      // operations and messages
std::vector<Case> AttackCases(const Settings& settings);      // an honest run beside floods of strangers

// Whether --only chooses this row: `name` begins with one of `only`, or `only` is empty.
bool IsChosen(const std::string& name, const std::vector<std::string>& only);

// Returns the cases with a row to show. Throws std::runtime_error with all names if one of `only` matches
// nothing.
std::vector<Case> Choose(const std::vector<Case>& cases, const std::vector<std::string>& only);

// Measures both sides of a row, each side once per round, in the order A B B A A B: close in time, so that a
// slow phase of the machine affects both, and each first in turn, so that a steady drift favours neither.
void TakeTurns(int rounds, const std::function<void()>& dtrain, const std::function<void()>& limit);

// Rate: what one side of a row did in one round.
struct Rate {
  double per_s = 0;
  std::optional<double> bytes;  // of one exchange
};

// Measures whole runs of dtrain by turns with their limit, or with the same runs of settings.beside. `dtrain`
// runs the program at that path once. `make_limit` prepares the limit, which is not called without need, and
// returns what runs it once. `limit_name`: what the limit is if it is no program of bench/limit.
void MeasureSides(const Settings& settings, const std::function<Rate(const std::string& program)>& dtrain,
                  const std::function<std::function<Rate()>()>& make_limit, Row* row,
                  const char* limit_name = nullptr);

// Measured: the result of MeasureAll().
struct Measured {
  std::vector<Row> rows;
  int failed = 0;   // cases that could not be run; standard error says why
  int lacking = 0;  // those that settings.beside could not run at all; likewise
};

// Measures the cases one after the other. Prints the rows that `only` chooses as they are done.
Measured MeasureAll(const std::vector<Case>& cases, const std::vector<std::string>& only);

// Print the report as a Markdown table. docs/performance.md explains the columns.
void PrintTableHead(const char* other = "limit");
void PrintRow(const Row& row);

// Returns the report as one JSON object: the machine, the rounds, and every row with the values of each
// round.
std::string ReportJson(const std::string& machine, int rounds, const std::vector<Row>& rows);

}  // namespace dtrain::bench
