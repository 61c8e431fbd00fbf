// SparseFile: a text whose lines are sparse rows (libsvm, vw, criteo), one open file. Owner: who reads the
// rows. Thread: one. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/input/input_bytes.h"
#include "trainer/input/text_reader.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/sparse_line.h"

namespace dtrain {

class SparseFile : public LineFile {
 public:
  // `skipped` as for RowFile.
  SparseFile(const DataConfig& data, const RowContext& context, std::unique_ptr<InputBytes> file,
             SkippedRows* skipped);

  bool NextText(RowText* row) override;
  int64_t inputs() const override { return inputs_; }
  int64_t FindField(const std::string& name, const char* key) const override;
  std::string_view Field(int64_t field) const override { return field == 0 ? line_.label : line_.tag; }
  // A label that is not there has the place of the line.
  CsvField label() const override;
  std::string Id() const override;  // of vw the tag
  std::vector<std::string> NumberNames() const override;

 private:
  Read ReadRow(ParsedRows* rows, RowLabels* labels) override;

  const int64_t inputs_;
  const bool weighted_;
  const std::unique_ptr<LineParser> parser_;
  SparseLine line_;
};

// The parser of data.train.format.
std::unique_ptr<LineParser> MakeLineParser(const DataConfig& data, const LineRules& rules);

}  // namespace dtrain
