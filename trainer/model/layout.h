// Layout: where each variable of a model lies in one flat vector of float32, and which contiguous range of
// that vector each ps owns. The order of variables is the placement's choice, so that every ps has one
// contiguous range under every policy: one payload, one copy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/config.h"

namespace dtrain {

// A [rows, cols] row-major variable; vectors have cols 1.
struct Variable {
  std::string name;  // "weights/W1", "biases/b1"
  int64_t rows = 0;
  int64_t cols = 1;
  bool bias = false;
  int64_t fan_in = 1;  // for glorot
  int64_t fan_out = 1;
  int64_t offset = 0;  // of element 0 in the flat vector
  int64_t size() const { return rows * cols; }
};

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// Rows [first_row, first_row + rows) of one variable, at `offset` of the flat vector.
struct Segment {
  int variable = 0;  // index into Layout::variables
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t offset = 0;
};

struct Layout {
  std::vector<Variable> variables;
  int64_t size = 0;
  std::vector<Range> ps;  // ps i owns [begin, end); in order, without gaps

  std::vector<Segment> SegmentsOf(int ps_index) const;
  // "weights/W1 [0:392)".
  std::string RowsText(const Segment& segment) const;
  const Variable& Find(const std::string& name) const;
};

// bytes: the flat vector is cut at row boundaries into ranges of nearly equal size.
// round_robin: whole variables in turn, variable i on ps i mod n.
// pin: whole variables, each on the ps that the first fitting entry of `pins` names ("weights/W1=0",
// "biases/*=1"); the others, largest first, on the ps with the fewest bytes. UserError where an entry fits no
// variable or names no ps.
// Every task computes the same layout from the same config.
Layout PlaceVariables(std::vector<Variable> variables, int ps_count, const PlacementConfig& placement);

}  // namespace dtrain
