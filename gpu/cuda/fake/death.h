// Dies(): for tests of what ends the process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

namespace dtrain::gpu::cuda {

// What a copy of this process writes to stderr until a signal ends it in `function`; "" where none does.
inline std::string Dies(const std::function<void()>& function) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    // Not doctest's or a sanitizer's, which would report a failed test.
    for (const int number : {SIGABRT, SIGSEGV}) std::signal(number, SIG_DFL);
    function();
    _exit(0);
  }
  close(pipe_ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t count; (count = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(count));
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? text + "ended by signal" : "";
}

inline bool Says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace dtrain::gpu::cuda
