// dtrain: parses the command line, dispatches, turns failures into a line and an exit code.
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "cmd/common/report.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/grammar/command_line.h"
#include "cmd/grammar/manual.h"
#include "cmd/keys/keys.h"
#include "cmd/launch/launch.h"
#include "cmd/look/look.h"
#include "cmd/models/models.h"
#include "cmd/report/run_report.h"
#include "cmd/run/run.h"
#include "cmd/status/status.h"
#include "cmd/tables/tables.h"
#include "gpu/cuda/runtime.h"

namespace dtrain {
namespace {

// The commands, by their arguments. Each call returns the exit code.
struct Commands {
  ErrorLines& errors;

  int operator()(const ShowText& show) const {
    fmt::print("{}", show.text);
    return 0;
  }
  int operator()(const ShowVersion&) const {
    fmt::print("{}", VersionText());
    return 0;
  }
  int operator()(const ShowGenerated& generated) const {
    fmt::print("{}", Generated(generated.what));
    return 0;
  }
  int operator()(const TaskArguments& arguments) const {
    return RunTaskCommand(arguments, gpu::cuda::MakeRuntime, errors);
  }
  int operator()(const LocalArguments& arguments) const {
    return RunLocalCommand(arguments, gpu::cuda::MakeRuntime, errors);
  }
  int operator()(const LaunchArguments& arguments) const { return RunLaunchCommand(arguments, errors); }
  int operator()(const GuardArguments& arguments) const { return RunGuardCommand(arguments); }
  int operator()(const CheckArguments& arguments) const { return RunCheckCommand(arguments); }
  int operator()(const CheckTableArguments& arguments) const { return RunCheckTableCommand(arguments); }
  int operator()(const InitArguments& arguments) const { return RunInitCommand(arguments, errors); }
  int operator()(const SynthArguments& arguments) const { return RunSynthCommand(arguments); }
  int operator()(const PlanArguments& arguments) const { return RunPlanCommand(arguments); }
  int operator()(const KeygenArguments& arguments) const { return RunKeygenCommand(arguments); }
  int operator()(const InspectArguments& arguments) const { return RunInspectCommand(arguments, errors); }
  int operator()(const EvalArguments& arguments) const {
    return RunEvalCommand(arguments, gpu::cuda::MakeRuntime, errors);
  }
  int operator()(const PredictArguments& arguments) const { return RunPredictCommand(arguments, errors); }
  int operator()(const ExportArguments& arguments) const { return RunExportCommand(arguments, errors); }
  int operator()(const ImportArguments& arguments) const { return RunImportCommand(arguments, errors); }
  int operator()(const StatusArguments& arguments) const { return RunStatusCommand(arguments); }
  int operator()(const ReportArguments& arguments) const { return RunReportCommand(arguments, errors); }
  int operator()(const DevicesArguments& arguments) const {
    return RunDevicesCommand(arguments, gpu::cuda::MakeRuntime);
  }
};

// Opens /dev/null for each standard file that this process was started without: otherwise the next file or
// pipe gets its number, and output goes there. Using one fails as before, but for standard error: a run needs
// no reader.
void OpenMissingStandardFiles() {
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_WRONLY};  // for 0, 1 and 2
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", kModes[fd]);  // the lowest number that is free
  }
}

// Runs the command, and returns its exit code. Its text is written when this returns.
int Run(int argc, char** argv, ErrorLines& errors) {
  try {
    const int code = std::visit(Commands{errors}, ParseCommandLine(argc, argv));
    if (std::fflush(stdout) != 0) throw OutputFailed(errno);
    return code;
  } catch (const std::system_error& error) {
    // More was printed than the buffer of standard output has room for.
    if (std::ferror(stdout) != 0) throw OutputFailed(error.code().value());
    throw;
  }
}

// Ends this process as other tools end when the reader of their output goes away: silently, by SIGPIPE.
void EndWithoutReader() {
  EndWithReader();
  raise(SIGPIPE);
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  OpenMissingStandardFiles();
  // A reader of our output that goes away must not end a run: `dtrain ... | head`.
  signal(SIGPIPE, SIG_IGN);
  // A file that may not grow (ulimit -f) is a write that fails with a reason, as on a full disk.
  signal(SIGXFSZ, SIG_IGN);
  ErrorLines errors;
  try {
    return Run(argc, argv, errors);
  } catch (const std::exception& error) {
    const auto* const of_file = dynamic_cast<const FileError*>(&error);
    if (of_file != nullptr && of_file->error_number() == EPIPE) EndWithoutReader();
    errors.Print(FailureText(error), LogLevel::kError, kEventRunEnded);  // JSON is of a run
    const auto* const failure = dynamic_cast<const Failure*>(&error);
    return static_cast<int>(failure != nullptr ? failure->code() : ExitCode::kInternal);
  }
}
