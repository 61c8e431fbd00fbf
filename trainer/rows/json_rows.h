// JSON lines as rows. Thread: any; free functions.
#pragma once

#include <memory>
#include <string_view>

#include "trainer/input/input_bytes.h"
#include "trainer/rows/row_file.h"

namespace dtrain {

// Opens JSON lines, one row per line: {"features": [1, 2]}, {"width": 1, "height": 2} or [1, 2]. "id" is
// passed on; members that the model does not know and empty lines are ignored. Labels are not supported.
std::unique_ptr<RowFile> OpenJsonFile(const RowSpec& spec, std::unique_ptr<InputBytes> file,
                                      SkippedRows* skipped);

// Returns a member of a JSON object as text, unchanged, so that what is passed on keeps every digit. `object`
// is the text of a valid object. Of members with the same name the last is returned, as parsers do; empty if
// there is none.
std::string_view MemberText(std::string_view object, std::string_view name);

}  // namespace dtrain
