#include "trainer/survey/faults.h"

#include <utility>

namespace dtrain {

void Faults::Add(TextPlace place, std::string_view text) {
  if (count++ > 0) return;
  first = place;
  example = text.substr(0, kMaxExample);
}

void Faults::Add(const Faults& others) {
  const auto key = [](const Faults& faults) { return std::pair(faults.first.line, faults.first.column); };
  if (others.count > 0 && (count == 0 || (others.file == file && key(others) < key(*this)))) {
    first = others.first;
    example = others.example;
    file = others.file;
  }
  count += others.count;
}

}  // namespace dtrain
