// SparseLine: one line of a text of sparse rows (libsvm, vw, criteo) as the row that it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/config.h"

namespace dtrain {

// SparseLine: a row. Its memory is kept for the next one; the views point into the line.
struct SparseLine {
  std::string_view label;     // empty: it has none
  std::string_view tag;       // of vw; empty: it has none
  double weight = 1;          // of vw
  std::vector<uint64_t> ids;  // features in the order of the line, from 0; one may come twice
  std::vector<float> values;  // of each

  void Clear() {
    label = tag = {};
    weight = 1;
    ids.clear();
    values.clear();
  }
};

// What is wrong with a line: at which byte of it, from 0, and which rule it breaks, with a remedy.
struct LineFault {
  size_t at = 0;
  std::string rule;
};

// LineParser: the parser of one format. Owner: a reader. Thread: one.
class LineParser {
 public:
  virtual ~LineParser() = default;
  // Parses a line without its end. False: it has no row, as an empty one or a comment has not. A fault leaves
  // `row` undefined.
  virtual bool Parse(std::string_view line, SparseLine* row, std::optional<LineFault>* fault) = 0;
  // Whether Parse() finds a row in the line, or a fault.
  virtual bool HasRow(std::string_view line) const = 0;
  // Returns a number of features that the line's row does not exceed, without parsing it.
  virtual int64_t MaxFeatures(std::string_view line) const = 0;
};

// Returns the blanks and tabs of a line.
int64_t CountBlanks(std::string_view line);

}  // namespace dtrain
