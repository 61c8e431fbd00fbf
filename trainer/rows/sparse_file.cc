#include "trainer/rows/sparse_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
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

// The label of the line that the reader is at. One that is not there has the place of the line.
CsvField LabelOf(const SparseLine& row, const LineReader& reader) {
  const int64_t at = row.label.empty() ? 0 : row.label.data() - reader.line().data();
  return {row.label, {reader.number(), at + 1}, false};
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
    : RowFile(data, skipped),
      reader_(std::move(file)),
      inputs_(context.inputs),
      weighted_(HasRowWeights(data)),
      parser_(MakeLineParser(data, inputs_, context.labels)) {}

int64_t SparseFile::FindField(const std::string& name) const {
  const bool tags = data().train.format == DataFormat::kVw;
  if (name == "label") return 0;
  if (name == "tag" && tags) return 1;
  throw UserError("--keep {}: a row of {} has no columns to keep. Try {}.", name, path(),
                  tags ? "tag, or label" : "label");
}

RowFile::Read SparseFile::ReadRow(ParsedRows* rows, RowLabels* labels) {
  std::optional<LineFault> fault;
  do {
    if (!reader_.Next()) return Read::kEnd;
  } while (!parser_->Parse(reader_.line(), &line_, &fault) && !fault);
  if (fault) throw FaultOf(*fault, reader_);
  if (labels != nullptr) labels->Add(LabelOf(line_, reader_));
  DropZeros(&line_);
  rows->sparse.Add(line_.ids.data(), line_.values.data(), line_.ids.size());
  if (weighted_) rows->weights.push_back(static_cast<float>(line_.weight));
  return Read::kRow;
}

SparseFacts ScanSparseRows(const DataConfig& data) {
  const SourceInputs inputs(data.train.path, "data.train.path");
  const std::unique_ptr<LineParser> parser = MakeLineParser(data, std::nullopt);
  ClassCounter counter(data);
  SparseFacts facts;
  SparseLine row;
  for (const std::string& file : inputs.files()) {
    LineReader reader(OpenInput(file, inputs.key()));
    while (reader.Next()) {
      std::optional<LineFault> fault;
      if (!parser->Parse(reader.line(), &row, &fault)) {
        if (fault && data.bad_rows == BadRows::kStop) throw FaultOf(*fault, reader);
        continue;
      }
      counter.Count(file, LabelOf(row, reader));
      for (const uint64_t id : row.ids) facts.inputs = std::max(facts.inputs, static_cast<int64_t>(id) + 1);
    }
  }
  facts.classes = counter.classes();
  return facts;
}

SparseSize EstimateSparseSize(const DataConfig& data, const SourceInputs& inputs) {
  constexpr int64_t kSampleBytes = 1 << 20;
  LineReader reader(OpenInput(inputs.files()[0], inputs.key()));
  const std::unique_ptr<LineParser> parser = MakeLineParser(data, std::nullopt);
  SparseLine row;
  int64_t rows = 0;
  double features = 0;
  while (reader.mark().byte < kSampleBytes && reader.Next()) {
    std::optional<LineFault> fault;
    if (!parser->Parse(reader.line(), &row, &fault)) continue;
    ++rows;
    features += static_cast<double>(row.ids.size());
  }
  const auto read = static_cast<double>(std::max<int64_t>(1, reader.mark().byte));
  const auto content = static_cast<double>(inputs.ExpectedContentFrom(0, reader.content_bytes()));
  return {static_cast<int64_t>(content / read * static_cast<double>(rows)),
          features / static_cast<double>(std::max<int64_t>(1, rows))};
}

}  // namespace dtrain
