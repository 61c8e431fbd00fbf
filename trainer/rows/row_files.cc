#include "trainer/rows/row_files.h"

#include <utility>

#include "trainer/input/sources.h"
#include "trainer/rows/csv_table.h"
#include "trainer/rows/hashed_csv.h"
#include "trainer/rows/sparse_file.h"

namespace dtrain {
namespace {

constexpr const char* kKey = "data.train.path";

}  // namespace

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
  if (context.records || !HasSparseRows(data)) {
    CsvLayout layout = LayoutOf(data, section, header, columns, context.how);
    layout.records = context.records;
    return std::make_unique<CsvFile>(data, std::move(reader), std::move(layout), skipped);
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
