// Opening files of rows, each as a RowFile: those of data.train as one sequence, and single ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/row_file.h"

namespace dtrain {

// Opens a file of data.train or data.test, or of rows for a trained model (RowContext::spec), of whatever
// format these are. `data` and what the context points to must outlive it.
std::unique_ptr<RowFile> OpenRowFile(const DataConfig& data, const RowContext& context,
                                     std::unique_ptr<InputBytes> file, SkippedRows* skipped);

// RowFiles: the files of data.train as one sequence of rows. Thread: any.
class RowFiles {
 public:
  // Opens the first file. `how` and `inputs`: as in RowContext.
  RowFiles(const DataConfig& data, std::vector<InputColumn> how, int64_t inputs);

  const CsvColumns& columns() const { return columns_; }
  int64_t inputs() const { return inputs_; }
  bool sparse() const { return HasSparseRows(data_); }
  bool weighted() const { return HasRowWeights(data_); }
  size_t count() const { return files_.size(); }
  const std::vector<std::string>& paths() const { return files_; }
  const std::string& path(size_t file) const { return files_[file]; }
  const RowContext& context() const { return context_; }  // of the first file
  std::string label_title() const { return ColumnTitle(columns_, columns_.label); }

  // Opens a file. Its columns must be those of the first.
  std::unique_ptr<RowFile> Open(size_t file, SkippedRows* skipped) const;

 private:
  const DataConfig data_;
  const std::vector<std::string> files_;
  RowContext context_;
  CsvColumns columns_;
  int64_t inputs_ = 0;
};

}  // namespace dtrain
