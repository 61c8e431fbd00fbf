// One field of a CSV file: its text as a number (the nearest float32, whatever the locale) or as a name, and
// what a message says of it. Errors are UserErrors: "file:line:column: width = abc; rule. remedy". Thread:
// any; free functions.
#pragma once

#include <string>
#include <string_view>

#include "trainer/data/files/csv_reader.h"

namespace dtrain {

enum class NumberText { kGood, kEmpty, kNoNumber, kNotFinite, kTooLarge };

// All of `text`, such as 5, -0.25, +1e-3 or .5, goes to *number; what is too small for float32 becomes the
// nearest float32. *number is undefined unless kGood.
NumberText ParseNumber(std::string_view text, float* number);

// The rule that a field breaks which is no number: "must be a number".
const char* NumberRule(NumberText state);

// The rule for a value of an image, which is a byte.
constexpr char kPixelRule[] = "must be 0 to 255, as the bytes of images that the model was trained on";
inline bool IsPixel(double value) { return value >= 0 && value <= 255; }

// Refuses a name of a column or of a class that is not UTF-8: logs, checkpoints and answers say names again,
// and there it would not be the file's any more, and two names may become one.
void CheckName(const std::string& path, const CsvField& field);

// The text with the quotes that the file has around and in it.
std::string TextInFile(const CsvField& field);

// "file:line:column: width = abc; rule", the value as it stands in the file. `title` is ColumnTitle().
UserError FieldError(const std::string& path, const std::string& title, const CsvField& field,
                     const std::string& rule);

}  // namespace dtrain
