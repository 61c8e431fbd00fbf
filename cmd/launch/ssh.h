// Commands of ours, here or over ssh: how their words are quoted, run, tried again, and what a failure means
// for the user. Thread: any; a call that runs a command waits for its end.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"

namespace dtrain {

// `word` so that a POSIX shell takes it as it is, whatever is in it; it has no line break.
std::string ShellQuoted(const std::string& word);
// All of them, with spaces between.
std::string ShellLine(const std::vector<std::string>& words);

struct CommandResult {
  int exit_code = 0;       // 128 + the signal that killed it
  std::string output;      // all of standard output
  std::string last_words;  // the last line of standard error, without its end; or that it gave no answer
};

// For a login script or a disk there that hangs.
constexpr milliseconds kNoAnswer{60000};

// Runs `command` with `input` as standard input, until it ends. One that for `timeout` neither says anything
// nor reads on in `input` is killed. Throws IoError where no process can be made.
CommandResult RunCommand(const std::string& name, const std::vector<std::string>& command, int input,
                         milliseconds timeout = kNoAnswer);

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

// SHA-256 by the program that every machine has, so that both sides have the same text: as `sha256sum` prints
// it of its standard input, without the line's end: 64 digits, and "  -". Throws UserError where the file
// cannot be read or the program is missing.
std::string ChecksumLine(const std::string& path);

// Retry: when to connect again to a machine that has turned us away, as sshd does with some of many that come
// at once. Each comes again at another time, later and later.
class Retry {
 public:
  // Nothing once it was tried for long enough.
  std::optional<TimePoint> Next();

 private:
  const TimePoint until_ = Clock::now() + milliseconds(30000);
  int max_ms_ = 500;
  std::mt19937 random_{std::random_device{}()};
};

// What a connection that failed means for the user, from what ssh or the other machine's shell said last.

// The last words as a sentence: "Broken pipe."
std::string AsSentence(const std::string& said);
// The last words and what to do about them: "Host key verification failed. ... connect once by hand: ssh
// node1 true". `machine` as the config names it; `login` is LoginThere().
std::string WithRemedy(const std::string& said, const std::string& machine, const std::string& login);
// Whether another try is worth it: a machine that is asked by many at once turns some away.
bool IsTransient(const std::string& said);

}  // namespace dtrain
