// What the relay here and the guard on a task's machine tell each other: lines of text over the standard
// input and output of one command, so that any shell, ssh or person can stand between them; and
// PendingWriter, by which both write.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace dtrain {

// A result may have a value for each row, worker or label.
constexpr size_t kMaxReportBytes = 16 << 20;

// From the relay: what the task is sent, and now and then that somebody is still there.
constexpr char kAliveLine[] = "alive";
constexpr char kInterruptLine[] = "INT";
constexpr char kTerminateLine[] = "TERM";
constexpr char kHangUpLine[] = "HUP";
constexpr char kKillLine[] = "KILL";

// From the guard: the first word of a line. What a login shell prints before them is passed over; the guard
// begins with a line break, since that may have none.
constexpr char kStartedWord[] = "@started";  // the task is
constexpr char kBegunWord[] = "@begun";      // the run, as --result-fd tells it
constexpr char kResultWord[] = "@result";    // and wire JSON
constexpr char kLostWord[] = "@lost";        // and a task's name, as --lost-fd tells it
constexpr char kExitWord[] = "@exit";        // and the task's exit code; the last line
constexpr char kSignalWord[] = "@signal";    // and the signal that killed the task; the last line

// PendingWriter: what has to be written to a pipe whose reader may be slow or gone, without waiting for it.
// Owner: an event loop, which flushes when poll() says that there is room. Thread: its owner's.
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
