// LogFile: the file of one task's log, appended to. One that cannot be written must not end a run, but it is
// said once: whoever looks into it later would miss lines without knowing.
// Owner: the task's Logger; `dtrain launch`, which writes what it hears of a task: not the relay, because one
// that waits for a disk would no longer say that it is alive. Thread: one at a time.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

class LogFile {
 public:
  // "worker-1.log" of "worker 1" in `directory`, which is created. Throws UserError where it cannot be
  // opened.
  LogFile(const std::string& task, const std::string& directory);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // `line` ends with its newline. Returns what is to be shown to people, of the first failure alone;
  // otherwise an empty text.
  std::string Append(std::string_view line);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
  bool failed_ = false;
};

}  // namespace dtrain
