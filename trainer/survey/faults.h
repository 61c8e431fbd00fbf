// Faults: how many fields or rows of a table have a fault of one kind, and the first of them. Thread: any;
// plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/input/csv_reader.h"

namespace dtrain {

constexpr size_t kMaxExample = 40;  // bytes of a text that is kept to be shown

struct Faults {
  int64_t count = 0;
  TextPlace first;
  std::string example;  // the first one's text, or its number of fields
  std::string file{};   // where the first is, of several; empty: in the table's one file

  void Add(TextPlace place, std::string_view text);
  // Those so far, whose file is not named yet, are of this one.
  void EndFile(const std::string& path) {
    if (count > 0 && file.empty()) file = path;
  }
  void Add(const Faults& others);
};

}  // namespace dtrain
