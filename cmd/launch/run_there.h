// One command of ours, here or over ssh, from its start to its end. Thread: any; the one that calls waits.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"

namespace dtrain {

struct Ran {
  int exit_code = 0;       // 128 + the signal that killed it
  std::string output;      // all of standard output
  std::string last_words;  // the last line of standard error, without its end; or that it gave no answer
};

// For a login script or a disk there that hangs.
constexpr milliseconds kNoAnswer{60000};

// Runs `command` with `input` as standard input, until it ends. One that for `patience` neither says anything
// nor reads on in `input` is killed. Throws IoError where no process can be made.
Ran RunThere(const std::string& name, const std::vector<std::string>& command, int input,
             milliseconds patience = kNoAnswer);

}  // namespace dtrain
