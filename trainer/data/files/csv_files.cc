#include "trainer/data/files/csv_files.h"

#include <utility>

#include "trainer/data/files/sources.h"

namespace dtrain {
namespace {

constexpr const char* kKey = "data.train.path";

}  // namespace

CsvFiles::CsvFiles(const DataConfig& data, std::vector<InputColumn> how)
    : data_(data), files_(SourceFiles(data.train.path, kKey)), how_(std::move(how)) {
  CsvReader first(OpenInput(files_.front(), kKey), DialectOf(data_));
  columns_ = ReadTrainColumns(data_, &first);
  inputs_ = FeaturesOf(columns_, how_);
}

std::unique_ptr<CsvReader> CsvFiles::Open(size_t file) const {
  auto reader = std::make_unique<CsvReader>(OpenInput(files_[file], kKey), DialectOf(data_));
  if (file == 0) {
    ReadTrainColumns(data_, reader.get());
  } else {
    CheckNextFile(columns_, files_.front(), reader.get());
  }
  return reader;
}

std::unique_ptr<TableRows> CsvFiles::Rows(CsvReader* reader, bool at_front, SkippedRows* skipped) const {
  const bool header = !at_front || data_.train.header;
  return std::make_unique<TableRows>(data_, "data.train", header, reader, columns_, how_, skipped);
}

}  // namespace dtrain
