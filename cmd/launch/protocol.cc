#include "cmd/launch/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "cmd/common/signal_pipe.h"

namespace dtrain {

PendingWriter::PendingWriter(int fd) : fd_(fd), flags_(fcntl(fd, F_GETFL)) {
  fcntl(fd_, F_SETFL, flags_ | O_NONBLOCK);
}

PendingWriter::~PendingWriter() { fcntl(fd_, F_SETFL, flags_); }

void PendingWriter::Add(std::string_view text) {
  waiting_ += text;
  Flush();
}

void PendingWriter::Flush() {
  while (!waiting_.empty()) {
    const ssize_t wrote = write(fd_, waiting_.data(), waiting_.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    if (wrote < 0) return waiting_.clear();
    waiting_.erase(0, static_cast<size_t>(wrote));
  }
}

void PendingWriter::Finish(TimePoint deadline) {
  while (pending() && Clock::now() < deadline) {
    pollfd room{fd_, POLLOUT, 0};
    poll(&room, 1, PollTimeout(deadline));
    Flush();
  }
}

}  // namespace dtrain
