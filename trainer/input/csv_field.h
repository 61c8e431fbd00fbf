// CsvField: a field of a table, and what it says: the text as a number (the nearest float32, independent of
// the locale), as a date or as a name, and messages about it. Errors are UserErrors: "file:line:column: width
// = abc; rule. remedy". Thread: any; plain values and free functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trainer/config/choices.h"
#include "trainer/input/text_reader.h"

namespace dtrain {

struct CsvField {
  std::string_view text;  // without the quotes around it, and plain (FieldReading)
  TextPlace place;        // of its first byte, which may be a quote
  bool quoted = false;
  bool trimmed = false;  // blanks at the ends of what its quotes enclose were left out
  // The file has a number here and no text, and the reader was asked for numbers: `text` is not the value.
  bool is_number = false;
  float number = 0;
  const std::string_view* raw = nullptr;  // the text as it is in the file; null: that is `text`

  std::string_view in_file() const { return raw == nullptr ? text : *raw; }
};

bool IsMissingWord(std::string_view text);  // for the next function
// Whether a field says that there is no value: it is empty, ?, NA, N/A, null or nan, in any case.
inline bool IsMissing(std::string_view text) {
  return text.empty() || ((text[0] == '?' || (text[0] | 0x20) == 'n') && IsMissingWord(text));
}

enum class NumberText { kGood, kEmpty, kNotANumber, kNotFinite, kTooLarge, kNotADate };

// Converts all of `text`, such as 5, -0.25, +1e-3 or .5, to *number; values too small for float32 become the
// nearest float32. *number is undefined unless the result is kGood.
NumberText ParseNumber(std::string_view text, float* number);
// The same with a comma before the decimals, if `decimal` says so; then a point is no number's.
NumberText ParseNumber(std::string_view text, Decimal decimal, float* number);
// The same for a field, which may be a number already.
inline NumberText ParseNumber(const CsvField& field, Decimal decimal, float* number) {
  if (!field.is_number) return ParseNumber(field.text, decimal, number);
  *number = field.number;
  return NumberText::kGood;
}
// Returns a whole number of up to 15 digits, as most numbers of most tables are; unset: it is none.
std::optional<double> ParseWhole(std::string_view text);
// Returns the number in double, and infinity if float32 cannot hold it; unset: it is none.
std::optional<double> ExactNumber(std::string_view text, Decimal decimal = Decimal::kPoint);
// Converts a date to days since 1970 (iso_date.h).
NumberText ParseDate(std::string_view text, float* number);

// Returns the rule that a field breaks if it is not kGood: "must be a number".
const char* NumberRule(NumberText state);

// The rule for a value of an image, which is a byte.
constexpr char kPixelRule[] = "must be 0 to 255, as the bytes of images that the model was trained on";
inline bool IsPixel(double value) { return value >= 0 && value <= 255; }

// Throws if a column's or class's name is not UTF-8. Logs, checkpoints and answers repeat names; there it
// would differ from the file's, and two names could become one.
void CheckName(const std::string& path, const CsvField& field);

// Returns "file:line:column: width = abc; rule", with the value as it is in the file. `title` is
// ColumnTitle().
RowFault FieldError(const std::string& path, const std::string& title, const CsvField& field,
                    const std::string& rule);

}  // namespace dtrain
