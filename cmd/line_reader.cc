#include "cmd/line_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace dtrain {
namespace {

// A line without an end must not fill the memory.
constexpr size_t kLongestLine = 64 * 1024;

}  // namespace

LineReader::LineReader(int fd) : fd_(fd) {
  if (fd_ < 0) return;
  flags_ = fcntl(fd_, F_GETFL);
  fcntl(fd_, F_SETFL, flags_ | O_NONBLOCK);
}

LineReader::~LineReader() { Close(); }

void LineReader::Close() {
  if (fd_ < 0) return;
  fcntl(fd_, F_SETFL, flags_);
  close(fd_);
  fd_ = -1;
}

void LineReader::Read(const std::function<void(const std::string&)>& sink) {
  // At most what a pipe holds at once: one talkative child must not keep the others waiting.
  std::vector<char> buffer(64 * 1024);
  ssize_t got = 0;
  for (int round = 0; round < 2 && fd_ >= 0; ++round) {
    got = read(fd_, buffer.data(), buffer.size());
    if (got <= 0) break;
    unfinished_.append(buffer.data(), static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end; (end = unfinished_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      sink(unfinished_.substr(begin, end + 1 - begin));
    }
    unfinished_.erase(0, begin);
    if (unfinished_.size() > kLongestLine) sink(std::exchange(unfinished_, "") + "\n");
  }
  if (fd_ < 0 || got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  Close();
  if (!unfinished_.empty()) sink(std::exchange(unfinished_, "") + "\n");
}

}  // namespace dtrain
