// PendingWriter: what has to be written to a pipe whose reader may be slow or gone, without waiting for it.
// Owner: an event loop, which flushes when poll() says that there is room. Thread: its owner's.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"

namespace dtrain {

class PendingWriter {
 public:
  // The descriptor no longer waits as long as this object lives; it is not closed.
  explicit PendingWriter(int fd);
  ~PendingWriter();
  PendingWriter(const PendingWriter&) = delete;
  PendingWriter& operator=(const PendingWriter&) = delete;

  int fd() const { return fd_; }
  // Something waits for room.
  bool pending() const { return !waiting_.empty(); }
  // Writes now as much as there is room for. What nobody can read any more is dropped.
  void Add(std::string_view text);
  void Flush();
  // Waits for room until all is written, or the deadline.
  void Finish(TimePoint deadline);

 private:
  const int fd_;
  const int flags_;
  std::string waiting_;
};

}  // namespace dtrain
