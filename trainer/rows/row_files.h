// Opening files of rows, each as a RowFile: those of data.train as one sequence, and single ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/data_config.h"
#include "trainer/rows/csv_table.h"
#include "trainer/rows/row_file.h"

namespace dtrain {

// Opens a file of data.train or data.test, or of rows for a trained model (RowContext::spec), of whatever
// format these are. `data` and what the context points to must outlive it.
std::unique_ptr<RowFile> OpenRowFile(const DataConfig& data, const RowContext& context,
                                     std::unique_ptr<InputBytes> file, SkippedRows* skipped);

// OpenRowFile() for one format each: json_rows.cc, hashed_csv.cc.

// Opens JSON lines, one row per line: {"features": [1, 2]}, {"width": 1, "height": 2} or [1, 2]. "id" is
// passed on; members that the model does not know and empty lines are ignored. Labels are not supported.
std::unique_ptr<RowFile> OpenJsonFile(const RowSpec& spec, std::unique_ptr<InputBytes> file,
                                      SkippedRows* skipped);

// Opens a table with columns whose texts are hashed (data.hash). `columns` are those of this file and `train`
// those of data.train, by which data.hash counts; their inputs belong together. `names`: as RowSpec::names.
// The others: as for LayoutOf() and CsvFile.
std::unique_ptr<RowFile> OpenHashedCsv(const DataConfig& data, const std::string& section, bool header,
                                       std::unique_ptr<CsvReader> reader, const CsvColumns& columns,
                                       const CsvColumns& train, SkippedRows* skipped,
                                       const NameWish* names = nullptr);

// Finds a trained model's columns in a table that it is asked about (model_columns.cc). Reads the first
// record, which stays the reader's current one. With a header, columns are found by the model's names and
// others are ignored. Without one, or for a model without names, the columns are the model's features in
// order. The label's column may stand among them: at its place in the training data, or, for a model of
// images, under the name "label". A file without a record has no columns.
CsvLayout FindModelColumns(const RowSpec& spec, CsvReader* reader);

// RowFiles: the files of data.train as one sequence of rows. Thread: any.
class RowFiles {
 public:
  // Opens the first file. `how` and `inputs`: as in RowContext.
  RowFiles(const DataConfig& data, std::vector<InputColumn> how, int64_t inputs);

  const CsvColumns& columns() const { return columns_; }
  int64_t inputs() const { return inputs_; }
  bool sparse() const { return HasSparseRows(data_); }
  bool weighted() const { return HasRowWeights(data_); }
  bool has_offsets() const { return !data_.offset.empty(); }
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
