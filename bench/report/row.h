// Row: one line of the report: what dtrain did in each round and, in the same rounds, its limit.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::bench {

// Of an odd or even number of values, at least one.
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

  // By round, so that what slows a round down cancels out. 1 is the limit, less is slower.
  std::vector<double> Ratios() const;
};

// Rows that are measured together. `measure` makes all of them.
struct Case {
  std::vector<std::string> rows;  // their names
  std::function<std::vector<Row>()> measure;
};

}  // namespace dtrain::bench
