// dtrain: parses the command line, dispatches, turns failures into a line and an exit code.
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/error.h"
#include "cmd/common/report.h"
#include "cmd/grammar/command_line.h"
#include "cmd/launch/launch.h"
#include "cmd/look/look.h"
#include "cmd/models/models.h"
#include "cmd/run/run.h"
#include "gpu/cuda/runtime.h"

namespace dtrain {
namespace {

int Dispatch(const ShowText& show, ErrorLines&) {
  fmt::print("{}", show.text);
  return 0;
}
int Dispatch(const ShowVersion&, ErrorLines&) {
  fmt::print("{}", VersionText());
  return 0;
}
int Dispatch(const TaskArguments& arguments, ErrorLines& errors) {
  return RunTaskCommand(arguments, gpu::cuda::MakeRuntime, errors);
}
int Dispatch(const LocalArguments& arguments, ErrorLines& errors) {
  return RunLocalCommand(arguments, gpu::cuda::MakeRuntime, errors);
}
int Dispatch(const LaunchArguments& arguments, ErrorLines& errors) {
  return RunLaunchCommand(arguments, errors);
}
int Dispatch(const GuardArguments& arguments, ErrorLines&) { return RunGuardCommand(arguments); }
int Dispatch(const CheckArguments& arguments, ErrorLines&) { return RunCheckCommand(arguments); }
int Dispatch(const PlanArguments& arguments, ErrorLines&) { return RunPlanCommand(arguments); }
int Dispatch(const InspectArguments& arguments, ErrorLines&) { return RunInspectCommand(arguments); }
int Dispatch(const EvalArguments& arguments, ErrorLines& errors) {
  return RunEvalCommand(arguments, gpu::cuda::MakeRuntime, errors);
}
int Dispatch(const PredictArguments& arguments, ErrorLines& errors) {
  return RunPredictCommand(arguments, errors);
}
int Dispatch(const ExportArguments& arguments, ErrorLines& errors) {
  return RunExportCommand(arguments, errors);
}
int Dispatch(const ImportArguments& arguments, ErrorLines& errors) {
  return RunImportCommand(arguments, errors);
}
int Dispatch(const DevicesArguments& arguments, ErrorLines&) {
  return RunDevicesCommand(arguments, gpu::cuda::MakeRuntime);
}

// Opens /dev/null for each standard file that this process was started without: otherwise the next file or
// pipe gets its number, and output goes there. Using one fails as before, but for standard error: a run needs
// no reader.
void OpenMissingStandardFiles() {
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_WRONLY};  // for 0, 1 and 2
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", kModes[fd]);  // the lowest number that is free
  }
}

int Main(int argc, char** argv) {
  OpenMissingStandardFiles();
  // A reader of our output that goes away must not end a run: `dtrain ... | head`.
  signal(SIGPIPE, SIG_IGN);
  // A file that may not grow (ulimit -f) is a write that fails with a reason, as on a full disk.
  signal(SIGXFSZ, SIG_IGN);
  ErrorLines errors;
  try {
    const int code = std::visit([&](const auto& arguments) { return Dispatch(arguments, errors); },
                                ParseCommandLine(argc, argv));
    if (std::fflush(stdout) != 0) throw IoError("standard output: {}", ErrnoText(errno));
    return code;
  } catch (const Failure& failure) {
    errors.Print(FailureText(failure));
    return static_cast<int>(failure.code());
  } catch (const std::exception& error) {
    errors.Print(FailureText(error));
    return static_cast<int>(ExitCode::kInternal);
  }
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) { return dtrain::Main(argc, argv); }
