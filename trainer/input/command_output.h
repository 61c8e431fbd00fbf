// The standard output of `/bin/sh -c COMMAND`, as a stream of bytes with an end that can be trusted: it ends
// only if the command has ended with exit code 0.
//
// The command has a process group of its own, no standard input, no descriptor but the standard ones, and
// default signals. Its standard error is passed on to that of this process, line by line. If the reader ends
// early, the group gets SIGTERM, and SIGKILL when the shell has ended or after two seconds. If this process
// dies, by kill -9 too, the kernel kills the shell (PR_SET_PDEATHSIG); what the shell has started gets
// SIGPIPE when it next writes. Owner: InputBytes. Thread: one; a thread of its own starts the command and
// reads its standard error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/input/input_bytes.h"

namespace dtrain {

// Starts `command`. `name` is for messages. `environment` is added to that of this process: "NAME=VALUE".
// Throws IoError if no process can be made. At the end Read() throws UserError if the command failed: with
// its exit code or signal and the last line that it wrote to standard error.
std::unique_ptr<PipeSource> StartCommand(const std::string& name, const std::string& command,
                                         const std::vector<std::string>& environment);

}  // namespace dtrain
