#include "trainer/data/files/row_file.h"

#include <utility>

#include "base/error.h"
#include "trainer/data/files/csv_table.h"
#include "trainer/data/files/hashed_csv.h"
#include "trainer/data/files/sources.h"
#include "trainer/data/files/sparse_file.h"

namespace dtrain {
namespace {

constexpr const char* kKey = "data.train.path";

}  // namespace

const CsvColumns& RowFile::columns() const {
  static const CsvColumns kNone;
  return kNone;
}

bool RowFile::Next(ParsedRows* rows, RowLabels* labels) {
  const size_t values = rows->features.size(), count = labels == nullptr ? 0 : labels->size();
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
    if (labels != nullptr) labels->Truncate(count);
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

std::unique_ptr<RowFile> OpenRowFile(const DataConfig& data, const RowContext& context,
                                     std::unique_ptr<InputBytes> file, SkippedRows* skipped) {
  if (data.train.format != DataFormat::kCsv) {
    return std::make_unique<SparseFile>(data, context, std::move(file), skipped);
  }
  auto reader = std::make_unique<CsvReader>(std::move(file), DialectOf(data));
  if (context.first != nullptr) CheckNextFile(*context.first, context.first_path, reader.get());
  const CsvColumns columns = context.first != nullptr ? *context.first
                             : context.train != nullptr
                                 ? ReadTestColumns(data, *context.train, reader.get(), context.labels)
                                 : ReadTrainColumns(data, reader.get(), context.labels);
  const char* const section = context.train != nullptr ? "data.test" : "data.train";
  const bool header = (context.train != nullptr ? data.test : data.train).header;
  if (!HasSparseRows(data)) {
    return std::make_unique<CsvFile>(data, std::move(reader),
                                     LayoutOf(data, section, header, columns, context.how), skipped);
  }
  return std::make_unique<HashedCsvFile>(data, section, header, std::move(reader), columns,
                                         context.train != nullptr ? *context.train : columns, skipped);
}

RowFiles::RowFiles(const DataConfig& data, std::vector<InputColumn> how, int64_t inputs)
    : data_(data), files_(SourceFiles(data.train.path, kKey)) {
  context_.how = std::move(how);
  context_.inputs = inputs;
  SkippedRows none;
  const std::unique_ptr<RowFile> first = OpenRowFile(data_, context_, OpenInput(files_.front(), kKey), &none);
  columns_ = first->columns();
  inputs_ = first->inputs();
}

std::unique_ptr<RowFile> RowFiles::Open(size_t file, SkippedRows* skipped) const {
  RowContext context = context_;
  if (file > 0) {
    context.first = &columns_;
    context.first_path = files_.front();
  }
  return OpenRowFile(data_, context, OpenInput(files_[file], kKey), skipped);
}

}  // namespace dtrain
