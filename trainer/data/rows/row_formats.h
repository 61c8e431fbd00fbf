// What the implementations of RowReader share: CSV and JSON in files of their own, IDX in row_reader.cc. Only
// they and row_reader.cc include this.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trainer/data/files/input_bytes.h"
#include "trainer/data/rows/row_reader.h"

namespace dtrain {

// Rows of a CSV file. With a header columns are found by the model's names; others are not read. Without one,
// or for a model without names, they are the model's features in order, with or without the label's column
// between them, which stands where it stood in the training data, or is called label where these were images.
std::unique_ptr<RowReader> OpenCsvRows(std::unique_ptr<InputBytes> file, const RowSpec& spec);

// One row a line, as {"features": [1, 2]}, {"width": 1, "height": 2} or [1, 2]; "id" is passed on, and what
// the model does not know is not read. Empty lines do not count. Labels cannot be asked for.
std::unique_ptr<RowReader> OpenJsonRows(std::unique_ptr<InputBytes> file, const RowSpec& spec);

// Images of an IDX file, with their labels from the file `labels` where the spec asks for them.
// `piped`: the file is standard input, of which only Next() knows whether there is more.
std::unique_ptr<RowReader> OpenIdxRows(std::unique_ptr<InputBytes> file, const RowSpec& spec,
                                       const std::string& labels, bool piped);

// The text of a member of a JSON object, as it was written: what is passed on unread keeps every digit.
// `object`: the text of one, which a parser has taken. Of members of one name the last, as parsers do; empty
// where there is none.
std::string_view MemberText(std::string_view object, std::string_view name);

// A feature's value as the model takes it.
inline float Scaled(const RowSpec& spec, int64_t feature, float value) {
  constexpr float kPixel = 1.0f / 255;
  if (spec.pixels) return value * kPixel;
  const FittedScale& scale = spec.form.scale;
  if (scale.shift.empty()) return value;
  const auto i = static_cast<size_t>(feature);
  return static_cast<float>((value - scale.shift[i]) * scale.factor[i]);
}

}  // namespace dtrain
