#include "cmd/pipe_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace dtrain {

PipeLines::PipeLines(int fd, size_t longest) : fd_(fd), longest_(longest) {
  if (fd_ < 0) return;
  flags_ = fcntl(fd_, F_GETFL);
  fcntl(fd_, F_SETFL, flags_ | O_NONBLOCK);
}

PipeLines::~PipeLines() { Close(); }

void PipeLines::Close() {
  if (fd_ < 0) return;
  fcntl(fd_, F_SETFL, flags_);
  close(fd_);
  fd_ = -1;
}

void PipeLines::Read(const std::function<void(const std::string&)>& sink) {
  // At most what a pipe holds at once: one talkative child must not keep the others waiting.
  std::vector<char> buffer(64 * 1024);
  ssize_t got = 0;
  for (int round = 0; round < 2 && fd_ >= 0; ++round) {
    got = read(fd_, buffer.data(), buffer.size());
    if (got <= 0) break;
    size_t begin = 0, looked_at = unfinished_.size();
    unfinished_.append(buffer.data(), static_cast<size_t>(got));
    for (size_t end; (end = unfinished_.find('\n', looked_at)) != std::string::npos;) {
      sink(unfinished_.substr(begin, end + 1 - begin));
      begin = looked_at = end + 1;
    }
    unfinished_.erase(0, begin);
    if (unfinished_.size() > longest_) sink(std::exchange(unfinished_, "") + "\n");
  }
  if (fd_ < 0 || got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  Close();
  if (!unfinished_.empty()) sink(std::exchange(unfinished_, "") + "\n");
}

}  // namespace dtrain
