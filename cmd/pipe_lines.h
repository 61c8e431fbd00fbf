// PipeLines: whole lines out of a pipe whose other end writes when it likes.
// Owner: who listens. Thread: its owner's.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace dtrain {

class PipeLines {
 public:
  // What people write has no longer lines: one without an end must not fill the memory.
  static constexpr size_t kLongest = 64 * 1024;
  // Takes the descriptor, which no longer waits; -1: there is nothing to read. A line of more than `longest`
  // bytes comes in pieces.
  explicit PipeLines(int fd = -1, size_t longest = kLongest);
  ~PipeLines();
  PipeLines(const PipeLines&) = delete;
  PipeLines& operator=(const PipeLines&) = delete;

  int fd() const { return fd_; }  // -1 after its end
  // Hands every whole line that is there to `sink`, with its newline; at the end also an unfinished one.
  // Never waits.
  void Read(const std::function<void(const std::string&)>& sink);

 private:
  void Close();

  int fd_;
  const size_t longest_;
  int flags_ = 0;  // as they were: of a terminal they are not ours alone
  std::string unfinished_;
};

}  // namespace dtrain
