// ErrorLines: what a command says on standard error in its own name rather than in a task's log: lines that
// begin with "dtrain: " or, where a task or `dtrain local` has read log.format: json, one object for each.
// Owner: main. Thread: any, once `json` is set.
#pragma once

#include <string>

namespace dtrain {

struct ErrorLines {
  bool json = false;  // set as soon as the config has told

  // `text`: one line or several.
  void Print(const std::string& text) const;
};

}  // namespace dtrain
