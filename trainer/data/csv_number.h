// The text of a CSV field as a number: the nearest float32, whatever the locale.
#pragma once

#include <string_view>

namespace dtrain {

enum class NumberText { kGood, kEmpty, kNoNumber, kNotFinite, kTooLarge };

// All of `text`, such as 5, -0.25, +1e-3 or .5, goes to *number; what is too small for float32 becomes the
// nearest float32. *number is undefined unless kGood.
NumberText ParseNumber(std::string_view text, float* number);

// What a message says of a field that is no number: "must be a number".
const char* NumberRule(NumberText state);

}  // namespace dtrain
