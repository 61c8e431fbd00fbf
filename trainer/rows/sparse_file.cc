#include "trainer/rows/sparse_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "trainer/rows/criteo_line.h"
#include "trainer/rows/libsvm_line.h"
#include "trainer/rows/vw_line.h"

namespace dtrain {

std::unique_ptr<LineParser> MakeLineParser(const DataConfig& data, std::optional<int64_t> inputs,
                                           bool labels) {
  switch (data.train.format) {
    case DataFormat::kLibsvm:
      return MakeLibsvmParser(data, inputs, labels);
    case DataFormat::kVw:
      return MakeVwParser(data, inputs);
    case DataFormat::kCriteo:
      return MakeCriteoParser(data, inputs);
    default:
      break;
  }
  DT_CHECK(false, static_cast<int>(data.train.format));
  return nullptr;
}

namespace {

RowFault FaultOf(const LineFault& fault, const LineReader& reader) {
  return FaultAt(reader.path(), {reader.number(), static_cast<int64_t>(fault.at) + 1}, fault.rule);
}

// A feature that is 0 is as one that is not there: its weight is not asked for.
void DropZeros(SparseLine* row) {
  if (std::find(row->values.begin(), row->values.end(), 0.0f) == row->values.end()) return;
  size_t kept = 0;
  for (size_t i = 0; i < row->ids.size(); ++i) {
    if (row->values[i] == 0) continue;
    row->ids[kept] = row->ids[i];
    row->values[kept++] = row->values[i];
  }
  row->ids.resize(kept);
  row->values.resize(kept);
}

}  // namespace

SparseFile::SparseFile(const DataConfig& data, const RowContext& context, std::unique_ptr<InputBytes> file,
                       SkippedRows* skipped)
    : LineFile(data, std::move(file), skipped),
      inputs_(context.inputs),
      weighted_(HasRowWeights(data) && context.labels),
      parser_(MakeLineParser(data, inputs_ != 0 ? std::optional<int64_t>(inputs_) : std::nullopt,
                             context.labels)) {}

CsvField SparseFile::label() const {
  const int64_t at = line_.label.empty() ? 0 : line_.label.data() - reader().line().data();
  return {line_.label, {reader().number(), at + 1}, false};
}

int64_t SparseFile::FindField(const std::string& name) const {
  const bool tags = data().train.format == DataFormat::kVw;
  if (name == "label") return 0;
  if (name == "tag" && tags) return 1;
  throw UserError("--keep {}: a row of {} has no columns to keep. Try {}.", name, path(),
                  tags ? "tag, or label" : "label");
}

std::string SparseFile::Id() const {
  return line_.tag.empty() ? std::string() : Json(std::string(line_.tag)).dump();
}

RowFile::Read SparseFile::ReadRow(ParsedRows* rows, RowLabels* labels) {
  std::optional<LineFault> fault;
  do {
    if (!reader().Next()) return Read::kEnd;
  } while (!parser_->Parse(reader().line(), &line_, &fault) && !fault);
  if (fault) throw FaultOf(*fault, reader());
  if (labels != nullptr) labels->Add(label());
  if (inputs_ != 0) DropZeros(&line_);
  rows->sparse.Add(line_.ids.data(), line_.values.data(), line_.ids.size());
  if (weighted_) rows->weights.push_back(static_cast<float>(line_.weight));
  return Read::kRow;
}

}  // namespace dtrain
