// SparseFile: a text whose lines are sparse rows (libsvm, vw, criteo), one open file of data.train or
// data.test. Owner: who reads the rows. Thread: one. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/config/config.h"
#include "trainer/data/files/row_file.h"
#include "trainer/data/files/sparse_line.h"
#include "trainer/data/files/text_reader.h"

namespace dtrain {

class SparseFile : public RowFile {
 public:
  // `inputs`: features of a row; `skipped` as for RowFile.
  SparseFile(const DataConfig& data, int64_t inputs, std::unique_ptr<InputBytes> file, SkippedRows* skipped);

  TextMark mark() const override { return reader_.mark(); }
  void GoTo(TextMark mark, int64_t bytes) override { reader_.GoTo(mark, bytes); }
  bool CanSeek() const override { return reader_.CanSeek(); }
  const std::string& path() const override { return reader_.path(); }
  int64_t content_bytes() const override { return reader_.content_bytes(); }
  int64_t inputs() const override { return inputs_; }

 private:
  Read ReadRow(ParsedRows* rows, RowLabels* labels) override;
  void SkipFault() override {}  // the reader is behind the line
  TextPlace PlaceOf(size_t byte) const { return {reader_.number(), static_cast<int64_t>(byte) + 1}; }

  LineReader reader_;
  const int64_t inputs_;
  const bool weighted_;
  const std::unique_ptr<LineParser> parser_;
  SparseLine line_;
};

}  // namespace dtrain
