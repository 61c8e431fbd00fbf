// dtrain: parses the command line, dispatches, turns failures into a line and an exit code.
#include <fmt/core.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <sstream>

#include "base/error.h"
#include "cmd/check_command.h"
#include "cmd/command_line.h"
#include "cmd/local_command.h"
#include "cmd/plan_command.h"
#include "cmd/task_command.h"

namespace dtrain {
namespace {

int Dispatch(const ShowText& show) {
  fmt::print("{}", show.text);
  return 0;
}
int Dispatch(const TaskArguments& arguments) { return RunTaskCommand(arguments); }
int Dispatch(const LocalArguments& arguments) { return RunLocalCommand(arguments); }
int Dispatch(const CheckArguments& arguments) { return RunCheckCommand(arguments); }
int Dispatch(const PlanArguments& arguments) { return RunPlanCommand(arguments); }

// One "dtrain: " line for each line of the text.
void PrintError(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) fmt::print(stderr, "dtrain: {}\n", line);
}

int Main(int argc, char** argv) {
  // A reader of our output that goes away must not end a run: `dtrain ... | head`.
  signal(SIGPIPE, SIG_IGN);
  try {
    const int code =
        std::visit([](const auto& arguments) { return Dispatch(arguments); }, ParseCommandLine(argc, argv));
    if (std::fflush(stdout) != 0) throw IoError("standard output: {}", ErrnoText(errno));
    return code;
  } catch (const Failure& failure) {
    PrintError(FailureText(failure));
    return static_cast<int>(failure.code());
  } catch (const std::exception& error) {
    PrintError(FailureText(error));
    return static_cast<int>(ExitCode::kInternal);
  }
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) { return dtrain::Main(argc, argv); }
