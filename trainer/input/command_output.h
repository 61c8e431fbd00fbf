// CommandOutput: the standard output of `/bin/sh -c COMMAND`, as a stream of bytes with an end that can be
// trusted: it ends only if the command has ended with exit code 0.
//
// The command has a process group of its own, no standard input, no descriptor but the standard ones, and
// default signals. Its standard error is passed on to that of this process, line by line. If the reader ends
// early, the group gets SIGTERM, and SIGKILL when the shell has ended or after kGraceMs. If this process
// dies, by kill -9 too, the kernel kills the shell (PR_SET_PDEATHSIG); what the shell has started gets
// SIGPIPE when it next writes. Owner: InputBytes. Thread: one; a thread of its own starts the command and
// reads its standard error.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "trainer/input/input_bytes.h"

namespace dtrain {

class CommandOutput : public PipeSource {
 public:
  static constexpr int kGraceMs = 2000;

  // Starts `command`. `name` is for messages. `environment` is added to that of this process: "NAME=VALUE".
  // Throws IoError if no process can be made.
  CommandOutput(std::string name, const std::string& command, const std::vector<std::string>& environment);
  ~CommandOutput() override;
  CommandOutput(const CommandOutput&) = delete;
  CommandOutput& operator=(const CommandOutput&) = delete;

  // At the end throws UserError if the command failed: with its exit code or signal and the last line that it
  // wrote to standard error.
  int64_t Read(char* out, int64_t size) override;

 private:
  void PassErrors();
  void EndErrors();
  void StopGroup();
  void CheckEnd(int status) const;

  const std::string name_;
  std::thread thread_;
  int output_ = -1;         // the read end of standard output
  int error_ = -1;          // the read end of standard error
  int wake_[2] = {-1, -1};  // its write end is closed when the command has ended
  pid_t pid_ = -1;          // -1: it has been reaped
  std::string last_line_;   // thread_ writes it, and has ended when it is read
};

}  // namespace dtrain
