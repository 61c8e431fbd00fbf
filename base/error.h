// Failure: an exception that ends a task, with the exit code for the shell or the orchestrator. It is thrown
// when a task cannot go on. What a healthy run meets (a timeout, a late peer, a bad frame) is a returned enum
// instead. The task runner and cmd/main.cc catch it and know the exit code. So does code that can go on
// without what failed (an optional file, one checkpoint of several) or hands it on (a thread, an order of ps
// 0).
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace dtrain {

// The exit codes of the process. They are part of the contract with scripts (docs/operations.md) and are
// never renumbered.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,       // our own fault, or local I/O such as a full disk
  kUser = 2,           // usage, config, data: the user can fix it
  kDiverged = 3,       // non-finite loss or gradient
  kPeerLost = 4,       // a peer is gone or a deadline passed
  kInterrupted = 130,  // SIGINT; the state was saved if there was any
  kTerminated = 143,   // SIGTERM; the same
};

class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// UserError: the user can fix it. The message names place, value, rule and remedy.
class UserError : public Failure {
 public:
  explicit UserError(const std::string& text) : Failure(ExitCode::kUser, text) {}
  template <typename... Args>
  explicit UserError(fmt::format_string<Args...> format, Args&&... args)
      : Failure(ExitCode::kUser, fmt::format(format, std::forward<Args>(args)...)) {}
};

// IoError: local input or output failed (disk full, unwritable directory).
class IoError : public Failure {
 public:
  template <typename... Args>
  explicit IoError(fmt::format_string<Args...> format, Args&&... args)
      : Failure(ExitCode::kInternal, fmt::format(format, std::forward<Args>(args)...)) {}
};

// PeerLost: a peer is gone or a deadline passed. The message names role, index, address and remedy.
class PeerLost : public Failure {
 public:
  template <typename... Args>
  explicit PeerLost(fmt::format_string<Args...> format, Args&&... args)
      : Failure(ExitCode::kPeerLost, fmt::format(format, std::forward<Args>(args)...)) {}
};

// Returns the message for what ended a task: a Failure's own text, a sentence about memory, or "internal
// error: ...".
std::string FailureText(const std::exception& error);

// Returns "No such file or directory (2)" for an errno value. Thread: any.
std::string ErrnoText(int error_number);

// Returns the failure of a file, pipe or socket that could not be opened: "what: why.", with the remedy when
// too many are open.
Failure NoDescriptor(const std::string& what, int error_number);

}  // namespace dtrain
