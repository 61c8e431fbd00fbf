// RowSum: the sum of gradients of rows, each of which has rows of its own. A row that a gradient has not
// counts as 0 there. Owner: TablePart. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/table/key_list.h"

namespace dtrain {

class RowSum {
 public:
  struct Part {
    KeySpan keys;
    const std::byte* values = nullptr;  // [keys, width] float32, at any address
    float share = 1;                    // that its values are multiplied by
  };

  explicit RowSum(int64_t width) : width_(width) {}

  // Adds up the parts in their order, row by row: ((part 0 + part 1) + ...), each rounded once. `rows`: to
  // which all keys belong.
  void Add(const std::vector<Part>& parts, RowRange rows);
  // The result; valid until the next call.
  KeySpan keys() const { return keys_; }
  gpu::Span<float> values() { return values_; }

 private:
  void AddRow(const std::vector<Part>& parts, size_t place, bool is_new);

  const int64_t width_;
  KeySorter sorter_;
  KeyList all_keys_;            // of all parts, where keys are too long to be sorted with their places
  std::vector<size_t> begins_;  // of each part among all keys
  std::vector<float> row_;
  KeyList keys_;
  std::vector<float> values_;
};

}  // namespace dtrain
