// Failures that end a task, with the exit code that a shell or an orchestrator acts on.
// Thrown where a task cannot go on; what a healthy run meets (a timeout, a late peer, a bad frame) is a
// returned enum instead. Only the task runner and cmd/main.cc catch these.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace dtrain {

// The process exit codes. docs/operations: part of the contract with scripts, never renumbered.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,       // our own fault, or local I/O such as a full disk
  kUser = 2,           // usage, config, data: the user can fix it
  kDiverged = 3,       // non-finite loss or gradient
  kPeerLost = 4,       // a peer is gone or a deadline passed
  kInterrupted = 130,  // SIGINT, and what there was is saved
  kTerminated = 143,   // SIGTERM, the same
};

class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// The message names place, value, rule and remedy: the user can fix it.
class UserError : public Failure {
 public:
  explicit UserError(const std::string& text) : Failure(ExitCode::kUser, text) {}
  template <typename... Args>
  explicit UserError(fmt::format_string<Args...> format, Args&&... args)
      : Failure(ExitCode::kUser, fmt::format(format, std::forward<Args>(args)...)) {}
};

// Local I/O failed (disk full, unwritable directory).
class IoError : public Failure {
 public:
  template <typename... Args>
  explicit IoError(fmt::format_string<Args...> format, Args&&... args)
      : Failure(ExitCode::kInternal, fmt::format(format, std::forward<Args>(args)...)) {}
};

// A peer is gone or a deadline passed; the message names role, index, address and remedy.
class PeerLost : public Failure {
 public:
  template <typename... Args>
  explicit PeerLost(fmt::format_string<Args...> format, Args&&... args)
      : Failure(ExitCode::kPeerLost, fmt::format(format, std::forward<Args>(args)...)) {}
};

// What is said of what ended a task: a Failure's own text; that memory ran out; "internal error: ...".
std::string FailureText(const std::exception& error);

// "No such file or directory (2)" for an errno value; thread-safe.
std::string ErrnoText(int error_number);

// "what: why.", of a file, pipe or socket that could not be opened; with the remedy where there are too many.
Failure NoDescriptor(const std::string& what, int error_number);

}  // namespace dtrain
