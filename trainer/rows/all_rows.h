// All rows of a pass, to be kept in memory. A plain file is parsed by several threads: it is cut
// into parts where lines end, each is parsed by a reader of its own, and they are joined in order. Rows,
// labels, what is left out and errors are those of one thread, whatever the number: a part counts only if the
// part before has ended where it begins, and not inside of quotes, and if nothing depends on what came before
// it. Any other is read again by the pass itself. Packed files and pipes are read by the pass.
// Thread: one calls it. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <functional>

#include "trainer/rows/pass.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_labels.h"

namespace dtrain {

// Reads all rows that `pass` has left, with data.threads. `take` gets them in order, about a MiB at a time;
// their labels are in `labels` before. Pass::Finish() is left to the caller.
void ReadAllRows(Pass* pass, RowLabels* labels, const std::function<void(const ParsedRows&)>& take);

}  // namespace dtrain
