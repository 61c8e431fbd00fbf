// PatientOutput: a descriptor that people read, as standard error: whoever reads it may stop, as a pager, a
// terminal after Ctrl-S or a program that hangs does, and nothing that runs may stop with him. It waits for
// room so long, and then drops what comes until there is room again, and counts that.
// Owner: standard error is the process's (StandardError()). Thread: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace dtrain {

class PatientOutput {
 public:
  // `fd` stays the caller's.
  PatientOutput(int fd, milliseconds patience);
  ~PatientOutput();
  PatientOutput(const PatientOutput&) = delete;
  PatientOutput& operator=(const PatientOutput&) = delete;

  // `text`: whole lines. Returns after `patience` at the latest. Of lines that are dropped one may have come
  // in part: the next that is written begins on a line of its own. What nobody can read any more is dropped
  // without being counted.
  void Write(std::string_view text);

  // How many lines were dropped since the last call, once there is room again; 0 till then.
  int64_t TakeMissing();

 private:
  bool HasRoom(milliseconds patience) const;
  // Returns how much of it is written.
  size_t WritePart(std::string_view text, milliseconds patience);

  const int given_;
  const int fd_;  // of the same file
  const milliseconds patience_;
  std::mutex mutex_;
  bool stalled_ = false;
  bool cut_ = false;  // what was written last has no line end
  int64_t missing_ = 0;
};

// That of this process. It is patient for 3 s, less than the others have with a task that says nothing.
PatientOutput& StandardError();

// For people, where lines are missing: "3 lines are missing here: ...".
std::string MissingText(int64_t lines);

}  // namespace dtrain
