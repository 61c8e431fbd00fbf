// LineReader: the lines of a file, or of standard input as they come. Owner: a RowReader. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/data/input_bytes.h"

namespace dtrain {

class LineReader {
 public:
  explicit LineReader(std::unique_ptr<InputBytes> file) : file_(std::move(file)) {}

  // The next line without its end, until the next call; false at the end of the file. UserError for a line of
  // more than 64 MiB.
  bool Next(std::string_view* line);
  // Whether a line that is not blank is there to its end.
  bool HasWholeLine() const {
    const size_t text = buffer_.find_first_not_of(" \t\r\n", begin_);
    return text != std::string::npos && buffer_.find('\n', text) != std::string::npos;
  }
  int64_t line() const { return line_; }  // of the last one, from 1
  const std::string& path() const { return file_->path(); }

 private:
  std::unique_ptr<InputBytes> file_;
  std::string buffer_;
  size_t begin_ = 0;  // of the next line
  int64_t line_ = 0;
  bool at_end_ = false;
};

}  // namespace dtrain
