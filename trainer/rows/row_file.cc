#include "trainer/rows/row_file.h"

#include "base/check.h"
#include "base/error.h"

namespace dtrain {

const CsvColumns& RowFile::columns() const {
  static const CsvColumns kNone;
  return kNone;
}

bool RowFile::NextText(RowText* /*row*/) {
  DT_CHECK(false, path());
  return false;
}

bool RowFile::Next(ParsedRows* rows, RowLabels* labels) {
  const size_t values = rows->features.size();
  const RowLabels::Mark mark = labels == nullptr ? RowLabels::Mark() : labels->mark();
  while (true) {
    try {
      const Read read = ReadRow(rows, labels);
      if (read == Read::kRow) return true;
      if (read == Read::kEnd) return false;
      ++skipped_.with_gaps;
    } catch (const RowFault& fault) {
      Note(fault);
    }
    rows->features.resize(values);
    if (labels != nullptr) labels->GoBack(mark);
  }
}

void RowFile::Note(const RowFault& fault) {
  if (data_.bad_rows == BadRows::kStop) throw fault;
  if (++skipped_.bad > data_.bad_rows_limit) {
    throw UserError("{} It is bad row {}, and data.bad_rows_limit = {}.", fault.what(), skipped_.bad,
                    data_.bad_rows_limit);
  }
  if (skipped_.faults.size() < SkippedRows::kToldFaults) skipped_.faults.emplace_back(fault.what());
  SkipFault();
}

}  // namespace dtrain
