// JSON lines as rows. Thread: any; a free function.
#pragma once

#include <memory>

#include "trainer/input/input_bytes.h"
#include "trainer/rows/row_file.h"

namespace dtrain {

// Opens JSON lines, one row per line: {"features": [1, 2]}, {"width": 1, "height": 2} or [1, 2]. "id" is
// passed on; members that the model does not know and empty lines are ignored. Labels are not supported.
std::unique_ptr<RowFile> OpenJsonFile(const RowSpec& spec, std::unique_ptr<InputBytes> file,
                                      SkippedRows* skipped);

}  // namespace dtrain
