// Names of classes, which may be numbers: what spellings of a label are one class, and the order of classes.
// All that read or compare labels ask here. Thread: any; free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// Returns the number that a label is; unset: it is none, or a double has not all its digits.
std::optional<double> LabelNumber(std::string_view text);
// Returns what all spellings of one class have in common: of numbers one text for 1, +1, 1.0 and 1e0, or for
// 0 and -0; of others the text.
std::string ClassKey(std::string_view text);
// Returns the number of the class that is spelled so; unset: it is none of `names`.
std::optional<int32_t> FindClass(const std::vector<std::string>& names, std::string_view text);
// Returns the place of each name in the order of classes: of their values if all are numbers, else of their
// bytes.
std::vector<int32_t> ClassOrder(const std::vector<std::string>& names);

}  // namespace dtrain
