#include "trainer/data/files/sparse_file.h"

#include <optional>
#include <utility>

namespace dtrain {

SparseFile::SparseFile(const DataConfig& data, int64_t inputs, std::unique_ptr<InputBytes> file,
                       SkippedRows* skipped)
    : RowFile(data, skipped),
      reader_(std::move(file)),
      inputs_(inputs),
      weighted_(HasRowWeights(data)),
      parser_(MakeLineParser(data, inputs)) {}

RowFile::Read SparseFile::ReadRow(ParsedRows* rows, RowLabels* labels) {
  std::optional<LineFault> fault;
  do {
    if (!reader_.Next()) return Read::kEnd;
  } while (!parser_->Parse(reader_.line(), &line_, &fault) && !fault);
  if (fault) throw FaultAt(path(), PlaceOf(fault->at), fault->rule);
  const bool here = !line_.label.empty();  // else the row has no label, which its begin is told of
  const auto at = here ? static_cast<size_t>(line_.label.data() - reader_.line().data()) : 0;
  labels->Add({line_.label, PlaceOf(at), false});
  rows->sparse.Add(line_.ids.data(), line_.values.data(), line_.ids.size());
  if (weighted_) rows->weights.push_back(static_cast<float>(line_.weight));
  return Read::kRow;
}

}  // namespace dtrain
