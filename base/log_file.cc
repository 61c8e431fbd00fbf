#include "base/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/write_all.h"

namespace dtrain {

LogFile::LogFile(const std::string& task, const std::string& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  std::string name = task;
  std::replace(name.begin(), name.end(), ' ', '-');
  path_ = directory + "/" + name + ".log";
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    throw UserError("{}: cannot be opened for the log: {}. Set log.dir to a writable directory.", path_,
                    ErrnoText(failed ? failed.value() : errno));
  }
}

LogFile::~LogFile() { close(fd_); }

std::string LogFile::Append(std::string_view line) {
  const int failed = WriteAll(fd_, line);
  if (failed == 0 || std::exchange(failed_, true)) return "";
  return fmt::format(
      "{}: cannot be written: {}. Lines are missing there from here on, until its disk has room.", path_,
      ErrnoText(failed));
}

}  // namespace dtrain
