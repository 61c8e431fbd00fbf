// Captured: what a piece of a test writes to standard error. Thread: one at a time.
#pragma once

#include <unistd.h>

#include <functional>
#include <string>

#include "base/check.h"

namespace dtrain::testing {

// Returns what `act` writes, its first 4096 bytes. It must write less than a pipe holds.
inline std::string Captured(const std::function<void()>& act) {
  int ends[2];
  DT_CHECK(pipe(ends) == 0);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  act();
  dup2(kept, STDERR_FILENO);
  close(kept);
  char buffer[4096];
  const ssize_t got = read(ends[0], buffer, sizeof buffer);
  close(ends[0]);
  return std::string(buffer, static_cast<size_t>(got > 0 ? got : 0));
}

}  // namespace dtrain::testing
