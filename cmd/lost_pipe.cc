#include "cmd/lost_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"

namespace dtrain {

LostPipe::LostPipe() {
  if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) throw NoDescriptor("no pipe", errno);
}

LostPipe::~LostPipe() {
  for (const int fd : ends_) close(fd);
}

std::vector<std::string> LostPipe::Take() {
  char buffer[4096];
  for (ssize_t got; (got = read(ends_[0], buffer, sizeof buffer)) > 0;) {
    unfinished_.append(buffer, static_cast<size_t>(got));
  }
  std::vector<std::string> names;
  size_t begin = 0;
  for (size_t end; (end = unfinished_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    names.push_back(unfinished_.substr(begin, end - begin));
  }
  unfinished_.erase(0, begin);
  return names;
}

void TellLost(int fd, const std::string& name) {
  const std::string line = name + "\n";  // far below PIPE_BUF, hence never mixed with another's
  [[maybe_unused]] const ssize_t wrote = write(fd, line.data(), line.size());
}

}  // namespace dtrain
