#include "cmd/common/signal_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "base/check.h"
#include "base/signals.h"

namespace dtrain {
namespace {

// A handler has no argument of ours, so it finds the write end here.
std::atomic<int> g_write_fd{-1};

struct Record {
  int64_t nanos;  // when the signal arrived
  int signal;
};

extern "C" void WriteSignal(int signal) {
  const int saved = errno;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const Record record = {now.tv_sec * 1000000000 + now.tv_nsec, signal};
  // A record is small enough to be written atomically. If the pipe is full, it already holds this signal.
  [[maybe_unused]] const ssize_t wrote = write(g_write_fd.load(), &record, sizeof record);
  errno = saved;
}

bool IsIgnored(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

SignalPipe::SignalPipe(std::initializer_list<int> signals) {
  int ends[2];
  DT_CHECK(g_write_fd.load() < 0);
  DT_CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, errno);
  read_fd_ = ends[0];
  g_write_fd = ends[1];
  struct sigaction action {};
  action.sa_handler = WriteSignal;
  action.sa_flags = SA_RESTART;
  for (const int signal : signals) {
    if (signal == SIGHUP && IsIgnored(signal)) continue;
    sigaction(signal, &action, nullptr);
    signals_.push_back(signal);
  }
}

SignalPipe::~SignalPipe() {
  for (const int signal : signals_) ::signal(signal, SIG_DFL);
  close(g_write_fd.exchange(-1));
  close(read_fd_);
}

int SignalPipe::Take() {
  Record record{};
  while (read(read_fd_, &record, sizeof record) == sizeof record) {
    if (!AsksToStop(record.signal)) return record.signal;
    const bool duplicate = IsDuplicate(record.signal, record.nanos);
    if (duplicate && record.signal != last_) continue;
    last_ = record.signal;
    last_nanos_ = record.nanos;
    if (!duplicate) return record.signal;
  }
  return 0;
}

bool SignalPipe::IsDuplicate(int signal, int64_t nanos) const {
  if (signal == SIGHUP) return last_ != 0;
  const bool soon = nanos - last_nanos_ < std::chrono::nanoseconds(kDuplicateWindow).count();
  return soon && (signal == last_ || last_ == SIGHUP);
}

void EndWithReader() { signal(SIGPIPE, SIG_DFL); }

}  // namespace dtrain
