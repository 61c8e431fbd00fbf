#include "trainer/optim/model_slots.h"

#include <algorithm>

namespace dtrain {
namespace {

std::string NamesText(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "no slots" : text;
}

}  // namespace

std::vector<RowSlot> ModelSlots::OfRow(int64_t width) const {
  std::vector<RowSlot> slots;
  int64_t begin = width;
  const auto add = [&](const std::vector<std::string>& of, size_t slot, int64_t first, int64_t count) {
    if (slot >= of.size()) return;
    slots.push_back({of[slot], begin, first, count});
    begin += count;
  };
  for (size_t slot = 0; slot < std::max(names.size(), linear.size()); ++slot) {
    if (differ()) add(linear, slot, 0, 1);
    add(names, slot, differ() ? 1 : 0, differ() ? width - 1 : width);
  }
  return slots;
}

std::string ModelSlots::Text() const {
  return differ() ? NamesText(linear) + " for the linear part, and " + NamesText(names) : NamesText(names);
}

}  // namespace dtrain
