#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "cmd/common/report.h"
#include "cmd/common/run_files.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/report/comparison.h"
#include "cmd/report/run_page.h"
#include "cmd/report/run_report.h"
#include "trainer/config/user_text.h"
#include "trainer/export/output_file.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// The runs that are named: themselves, or the directory that they are in. Among several, what is there and
// is none is left out with a warning: they may come from a pattern.
std::vector<RunFiles> ReadRuns(const std::vector<std::string>& named, const ErrorLines& errors) {
  std::vector<RunFiles> runs;
  for (const std::string& path : named) {
    std::vector<std::string> paths = IsRun(path) ? std::vector<std::string>{path} : RunPathsIn(path);
    std::error_code failed;
    if (!fs::exists(path, failed))
      throw UserError("{}: no such directory. Name a run, such as one of runs/.{}", path,
                      SimilarPathHint(path));
    if (paths.empty() && named.size() == 1) ReadRun(path);  // throws
    if (paths.empty()) {
      errors.Print(fmt::format("{}: not the directory of a run; left out", path), LogLevel::kWarning);
    }
    for (const std::string& each : paths) runs.push_back(ReadRun(each));
  }
  if (runs.empty()) throw UserError("none of these is the directory of a run. Name some of runs/.");
  return runs;
}

void Put(const std::string& text, const std::string& file) {
  if (!file.empty() && file != kStandardOutput) {
    OutputFile output(file);
    output.Write(text);
    return output.Finish();
  }
  fmt::print("{}", text);
  if (std::fflush(stdout) != 0) throw OutputFailed(errno);
}

// The width of the terminal, or one that most readers of a file have.
size_t Columns() {
  constexpr size_t kUsual = 120;
  const int columns = SizeOfTerminal(STDOUT_FILENO).columns;
  return columns > 0 ? static_cast<size_t>(columns) : kUsual;
}

// Writes a page and says where it is.
void PutPage(const std::string& html, const std::string& file) {
  Put(html, file);
  if (file != kStandardOutput) fmt::print("report: {}\n", file);
}

}  // namespace

int RunReportCommand(const ReportArguments& arguments, const ErrorLines& errors) {
  EndWithReader();
  std::vector<RunFiles> runs = ReadRuns(arguments.runs, errors);
  const bool table = arguments.csv || arguments.json;
  if (runs.size() == 1 && !table) {
    const std::string beside = (fs::path(runs[0].path) / "report.html").string();
    if (arguments.out.empty() && fs::is_symlink(fs::path(beside))) {
      throw UserError("{}: a link is there, and the page would replace what it points to. Name a file: --out",
                      beside);
    }
    PutPage(RunPage(runs[0]), arguments.out.empty() ? beside : arguments.out);
    return 0;
  }
  const Comparison comparison(std::move(runs), arguments.by);
  if (table) {
    Put(arguments.csv ? comparison.Csv() : comparison.ToJson().dump(2) + "\n", arguments.out);
    return 0;
  }
  if (arguments.out != kStandardOutput) fmt::print("{}", comparison.Text(Columns()));
  if (!arguments.out.empty()) PutPage(comparison.Page(), arguments.out);
  return 0;
}

}  // namespace dtrain
