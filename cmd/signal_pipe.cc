#include "cmd/signal_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "base/check.h"

namespace dtrain {
namespace {

// Handlers have no argument of ours: the write end has to be found from a static place.
std::atomic<int> g_write_fd{-1};

extern "C" void WriteSignal(int signal) {
  const int saved = errno;
  const unsigned char byte = static_cast<unsigned char>(signal);
  // A full pipe already holds this news.
  [[maybe_unused]] const ssize_t wrote = write(g_write_fd.load(), &byte, 1);
  errno = saved;
}

}  // namespace

SignalPipe::SignalPipe(std::initializer_list<int> signals) : signals_(signals) {
  int ends[2];
  DT_CHECK(g_write_fd.load() < 0);
  DT_CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, errno);
  read_fd_ = ends[0];
  g_write_fd = ends[1];
  struct sigaction action {};
  action.sa_handler = WriteSignal;
  action.sa_flags = SA_RESTART;
  for (const int signal : signals_) sigaction(signal, &action, nullptr);
}

SignalPipe::~SignalPipe() {
  for (const int signal : signals_) ::signal(signal, SIG_DFL);
  close(g_write_fd.exchange(-1));
  close(read_fd_);
}

int SignalPipe::Take() {
  unsigned char byte = 0;
  return read(read_fd_, &byte, 1) == 1 ? byte : 0;
}

}  // namespace dtrain
