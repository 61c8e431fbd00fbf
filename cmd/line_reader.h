// LineReader: whole lines out of a pipe whose other end writes when it likes.
// Owner: who listens. Thread: its owner's.
#pragma once

#include <functional>
#include <string>

namespace dtrain {

class LineReader {
 public:
  // Takes the descriptor, which no longer waits; -1: there is nothing to read.
  explicit LineReader(int fd = -1);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  int fd() const { return fd_; }  // -1 after its end
  // Hands every whole line that is there to `sink`, with its newline; at the end also an unfinished one.
  // Never waits.
  void Read(const std::function<void(const std::string&)>& sink);

 private:
  void Close();

  int fd_;
  int flags_ = 0;  // as they were: of a terminal they are not ours alone
  std::string unfinished_;
};

}  // namespace dtrain
