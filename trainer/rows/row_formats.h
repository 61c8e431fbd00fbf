// The openers of each row format, for open_rows.cc only, which has that of IDX; the others are in files of
// their own.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trainer/input/input_bytes.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {

// Opens rows of a CSV file. With a header, columns are found by the model's names and others are ignored.
// Without one, or for a model without names, the columns are the model's features in order. The label's
// column may stand among them: at its place in the training data, or, for a model of images, under the name
// "label".
std::unique_ptr<RowReader> OpenCsvRows(std::unique_ptr<InputBytes> file, const RowSpec& spec);

// Opens JSON lines, one row per line: {"features": [1, 2]}, {"width": 1, "height": 2} or [1, 2]. "id" is
// passed on; members that the model does not know and empty lines are ignored. Labels are not supported.
std::unique_ptr<RowReader> OpenJsonRows(std::unique_ptr<InputBytes> file, const RowSpec& spec);

// Opens images of an IDX file, with their labels from the file `labels` if the spec asks for them.
std::unique_ptr<RowReader> OpenIdxRows(std::unique_ptr<InputBytes> file, const RowSpec& spec,
                                       const std::string& labels);

// Opens a text of sparse rows, or a table with hashed columns, as RowSpec::sparse says. Of lines a row's tag
// is its id.
std::unique_ptr<RowReader> OpenSparseRows(std::unique_ptr<InputBytes> file, const RowSpec& spec);

// Returns a member of a JSON object as text, unchanged, so that what is passed on keeps every digit. `object`
// is the text of a valid object. Of members with the same name the last is returned, as parsers do; empty if
// there is none.
std::string_view MemberText(std::string_view object, std::string_view name);

// Returns a feature's value as scaled for the model.
inline float Scaled(const RowSpec& spec, int64_t feature, float value) {
  constexpr float kPixel = 1.0f / 255;
  if (spec.pixels) return value * kPixel;
  const FittedScale& scale = spec.form.scale;
  if (scale.shift.empty()) return value;
  const auto i = static_cast<size_t>(feature);
  return static_cast<float>((value - scale.shift[i]) * scale.factor[i]);
}

}  // namespace dtrain
