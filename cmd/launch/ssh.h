// Commands on this or another machine: running and retrying them, and explaining their failures to
// the user. Thread: any; a call that runs a command waits for its end.
#pragma once

#include <atomic>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"

namespace dtrain {

struct CommandResult {
  int exit_code = 0;       // 128 + the signal that killed it
  std::string output;      // standard output
  std::string last_error;  // the last line of standard error, without its end, or "no answer" in words
};

// For a login script or a disk that hangs on the other machine.
constexpr milliseconds kNoAnswer{60000};

// Runs `command` with `input` as standard input, until it ends. Kills it if it neither writes nor reads for
// `timeout`, and soon after `stop`, if there is one, is true. Throws IoError if no process can be made.
CommandResult RunCommand(const std::string& name, const std::vector<std::string>& command, int input,
                         milliseconds timeout = kNoAnswer, const std::atomic<bool>* stop = nullptr);

// OpenFile: a file as the standard input of a command. Owner: the caller of RunCommand().
class OpenFile {
 public:
  explicit OpenFile(const std::string& path);  // throws UserError
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Returns the SHA-256 of a file as `sha256sum` prints it for standard input: 64 digits and "  -", without the
// line's end. The same program runs on all machines, so the texts are equal. Throws UserError if the file
// cannot be read or the program is missing.
std::string ChecksumLine(const std::string& path);

// Retry: when to connect again to a machine that refused a connection, as sshd does when many come at once.
// The pauses are random and grow.
class Retry {
 public:
  // Returns the time of the next attempt; nothing after enough attempts.
  std::optional<TimePoint> Next();

 private:
  const TimePoint until_ = Clock::now() + milliseconds(30000);
  int max_ms_ = 500;
  std::mt19937 random_{std::random_device{}()};
};

// Explanations of a failed connection, from the last message of ssh or the remote shell.

// Returns the message as a sentence: "Broken pipe."
std::string AsSentence(const std::string& said);
// Returns the message and what to do about it: "Host key verification failed. ... connect once by hand: ssh
// node1 true". `machine` is the name in the config; `login` is SshLogin().
std::string WithRemedy(const std::string& said, const std::string& machine, const std::string& login);
// Whether a retry may succeed: a machine that is asked by many at once refuses some.
bool IsTransient(const std::string& said);

}  // namespace dtrain
