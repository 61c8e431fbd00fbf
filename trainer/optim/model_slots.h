// ModelSlots: the names of what a model's optimizers remember of each value (optim/optimizer.h), and where a
// row of a table has them. The first value of a row, the weight of its feature, may have other slots than all
// other values, if it has an optimizer of its own (train.optimizer.wide, .linear). A row is its weights, then
// slot 1, slot 2 and so on, each for the values that have so many slots, in their order.
// Thread: any; plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dtrain {

struct SlotCounts {
  SlotCounts(int64_t all) : linear(all), other(all) {}
  SlotCounts(int64_t of_linear, int64_t of_other) : linear(of_linear), other(of_other) {}
  // What a row of `width` weights takes with its slots.
  int64_t RowValues(int64_t width) const { return width * (1 + other) + linear - other; }

  int64_t linear = 0;  // of the first value of a row
  int64_t other = 0;   // of all others, those of tensors among them
};

// RowSlot: the values of one slot in a row.
struct RowSlot {
  std::string name;
  int64_t begin = 0;  // where they are in the row, whose weights begin at 0
  int64_t first = 0;  // the first weight that it is for
  int64_t count = 0;  // of weights
};

struct ModelSlots {
  ModelSlots() = default;
  // All values have the same.
  ModelSlots(std::vector<std::string> all) : names(std::move(all)), linear(names) {}
  ModelSlots(std::vector<std::string> of_others, std::vector<std::string> of_linear)
      : names(std::move(of_others)), linear(std::move(of_linear)) {}

  bool differ() const { return linear != names; }
  SlotCounts counts() const {
    return {static_cast<int64_t>(linear.size()), static_cast<int64_t>(names.size())};
  }
  // The slots of a row of `width` weights, in its order.
  std::vector<RowSlot> OfRow(int64_t width) const;
  // Returns "m, v", "no slots", or "z, n for the linear part, and accumulator".
  std::string Text() const;
  bool operator==(const ModelSlots& other) const { return names == other.names && linear == other.linear; }

  std::vector<std::string> names;   // of tensors, and of the values of a row behind the first
  std::vector<std::string> linear;  // of the first value of a row
};

}  // namespace dtrain
