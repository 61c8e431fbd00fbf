// RowBlock: some rows of a file as a model takes them, with what else was read of each.
// Owner: who reads. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/batch.h"

namespace dtrain {

struct RowBlock {
  explicit RowBlock(int64_t inputs_of_each) : inputs(inputs_of_each) {}

  void Clear();
  // Of a row that could not be read to its end.
  void DropUnfinished();
  // All rows; points into this, until it changes.
  Batch AsBatch();

  const int64_t inputs;
  int64_t rows = 0;
  // [rows, inputs], one of the two: scaled values, or bytes, each a feature times 255.
  std::vector<float> floats;
  std::vector<uint8_t> bytes;
  // Where labels were asked for, one of the two.
  std::vector<int32_t> labels;
  std::vector<float> targets;
  std::vector<std::string> ids;  // as they were written, in JSON; empty where a row has none

 private:
  std::vector<int64_t> numbers_;  // 0, 1, ...
};

}  // namespace dtrain
