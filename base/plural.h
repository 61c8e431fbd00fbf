// "1 row", "2 rows".
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain {

// `one` is the word for one; `many` the word for any other number where an s behind it does not make it.
inline std::string Plural(int64_t count, std::string_view one, std::string_view many = "") {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace dtrain
