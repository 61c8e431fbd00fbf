#include "trainer/tf/tf_slots.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace dtrain {
namespace {

// Keras's momentum, and that of TF2's SGD, have the learning rate inside.
constexpr SlotName kSlots[] = {{"velocity", "Momentum", "", ""},
                               {"accumulator", "Adagrad", "accumulator", "accumulator"},
                               {"mean_square", "RMSProp", "rms", "velocity of RMSprop"},
                               {"m", "Adam", "m", "momentum of Adam"},
                               {"v", "Adam_1", "v", "velocity of Adam"},
                               {"z", "Ftrl_1", "linear", "linear"},
                               {"n", "Ftrl", "accumulator", "accumulator"}};

}  // namespace

const SlotName& SlotNameOf(const std::string& ours) {
  const auto* const found = std::find_if(std::begin(kSlots), std::end(kSlots),
                                         [&](const SlotName& each) { return each.ours == ours; });
  DT_CHECK(found != std::end(kSlots), ours);
  return *found;
}

// weights/W1[color] is that of a column.
bool IsLinear(const Variable& of_table) {
  return of_table.bias || of_table.name.rfind(kTableWeights, 0) == 0;
}

std::vector<std::vector<std::string>> SlotsByVariable(const ModelSlots& slots,
                                                      const std::vector<Variable>& variables,
                                                      size_t of_table) {
  std::vector<std::vector<std::string>> by_variable;
  for (const Variable& variable : variables) {
    const bool is_linear = by_variable.size() >= of_table && IsLinear(variable);
    by_variable.push_back(is_linear ? slots.linear : slots.names);
  }
  return by_variable;
}

std::vector<TableColumns> TableColumnsOf(const ModelSlots& slots, const std::vector<Variable>& of_table,
                                         int64_t width, bool bias) {
  std::vector<TableColumns> all;
  int64_t at = 0;
  for (size_t i = 0; i < of_table.size(); ++i) {
    const Variable& variable = of_table[i];
    if (variable.bias != bias) continue;
    const TableColumns weights{i, 0, at, bias ? variable.rows : variable.cols};
    all.push_back(weights);
    at += weights.count;
    size_t number = 0;
    for (const RowSlot& slot : slots.OfRow(width)) {
      if (weights.at < slot.first || weights.at + weights.count > slot.first + slot.count) continue;
      all.push_back({i, ++number, slot.begin + weights.at - slot.first, weights.count});
    }
  }
  return all;
}

}  // namespace dtrain
