// Prints dtrain.1 (`write_manual man`) or the completions of a shell (`write_manual bash`, `write_manual
// zsh`).
#include <cstdio>
#include <cstring>

#include "cmd/grammar/manual.h"

int main(int argc, char** argv) {
  const dtrain::CommandLineText line = dtrain::DescribeCommandLine();
  const char* const what = argc == 2 ? argv[1] : "";
  if (std::strcmp(what, "man") == 0) {
    std::fputs(dtrain::ManPage(line).c_str(), stdout);
  } else if (std::strcmp(what, "bash") == 0) {
    std::fputs(dtrain::BashCompletions(line).c_str(), stdout);
  } else if (std::strcmp(what, "zsh") == 0) {
    std::fputs(dtrain::ZshCompletions(line).c_str(), stdout);
  } else {
    std::fputs("write_manual: man, bash or zsh\n", stderr);
    return 2;
  }
  return 0;
}
