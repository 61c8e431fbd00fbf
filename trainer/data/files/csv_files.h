// The CSV files of data.train as one sequence of rows. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/files/csv_reader.h"
#include "trainer/data/files/csv_table.h"
#include "trainer/data/files/input_form.h"

namespace dtrain {

// Thread: any.
class CsvFiles {
 public:
  // `how`: as in CsvLayout.
  CsvFiles(const DataConfig& data, std::vector<InputColumn> how);

  const CsvColumns& columns() const { return columns_; }
  int64_t inputs() const { return inputs_; }
  size_t count() const { return files_.size(); }
  const std::string& path(size_t file) const { return files_[file]; }

  // Opens a file. Its columns must be those of the first.
  std::unique_ptr<CsvReader> Open(size_t file) const;
  // Returns the rows of a file from its reader's place on. `at_front`: the reader has just been opened.
  std::unique_ptr<TableRows> Rows(CsvReader* reader, bool at_front) const;

 private:
  const DataConfig data_;
  const std::vector<std::string> files_;
  const std::vector<InputColumn> how_;
  CsvColumns columns_;
  int64_t inputs_ = 0;
};

}  // namespace dtrain
