// What every parser of lines of sparse rows promises, whatever the line is.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/target.h"
#include "trainer/rows/sparse_line.h"

namespace dtrain::fuzz {

// Parses each line of `text`. `zeros`: features may have the value 0.
inline void ParseLines(LineParser* parser, const std::string& text, uint64_t inputs, bool zeros = false) {
  SparseLine row;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    // A copy, so that reading beyond the line is found.
    const std::string line = text.substr(begin, end - begin);
    std::optional<LineFault> fault;
    const bool parsed = parser->Parse(line, &row, &fault);
    begin = end + 1;
    if (fault) {
      Require(!parsed, "a line with a fault is no row");
      Require(fault->at <= line.size(), "a fault is in its line");
      Require(!fault->rule.empty() && fault->rule.back() == '.', "a fault has a rule and a remedy");
    }
    if (!parsed) continue;
    Require(row.ids.size() == row.values.size(), "each feature has a value");
    for (const uint64_t id : row.ids) Require(id < inputs, "features are of the model");
    for (const float value : row.values) {
      Require(std::isfinite(value) && (zeros || value != 0), "values are finite and not 0");
    }
    Require(row.weight >= 0 && std::isfinite(row.weight), "a weight is finite and at least 0");
    for (const std::string_view part : {row.label, row.tag}) {
      Require(part.empty() ||
                  (part.data() >= line.data() && part.data() + part.size() <= line.data() + line.size()),
              "label and tag are in the line");
    }
  }
}

}  // namespace dtrain::fuzz
