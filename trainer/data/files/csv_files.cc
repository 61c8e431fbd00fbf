#include "trainer/data/files/csv_files.h"

#include <fmt/core.h>

#include <limits>
#include <utility>

#include "trainer/data/files/sources.h"

namespace dtrain {

CsvFiles::CsvFiles(const DataConfig& data, std::vector<InputColumn> how)
    : data_(data), files_(SourceFiles(data.train.path, "data.train.path")), how_(std::move(how)) {
  CsvReader first(files_.front(), "data.train.path", DialectOf(data_));
  columns_ = ReadTrainColumns(data_, &first);
  inputs_ = FeaturesOf(columns_, how_);
}

std::unique_ptr<CsvReader> CsvFiles::Open(size_t file) const {
  auto reader = std::make_unique<CsvReader>(files_[file], "data.train.path", DialectOf(data_));
  const CsvColumns columns = ReadTrainColumns(data_, reader.get());
  if (columns.names == columns_.names && columns.count == columns_.count) return reader;
  throw CsvError(files_[file], {1, 1},
                 fmt::format("other columns than in {}; the files of data.train are one table. Give all the "
                             "same header.",
                             files_.front()));
}

std::unique_ptr<TableRows> CsvFiles::Rows(CsvReader* reader, bool at_front) const {
  const bool header = !at_front || data_.train.header;
  return std::make_unique<TableRows>(data_, "data.train", header, reader, columns_, how_);
}

}  // namespace dtrain
