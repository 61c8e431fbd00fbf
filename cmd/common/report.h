// Reports of a command: ErrorLines are its lines on standard error, ResultFile is the JSON document of
// --result. A child task reports to its parent on standard output.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/signals.h"
#include "trainer/config/cluster_config.h"
#include "trainer/config/run_config.h"
#include "trainer/result/run_account.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

class RunDirectory;

// The first words of a report line that a task started with --reports writes to standard output.
constexpr char kBegunWord[] = "@begun";    // the run has begun; followed by its identity as JSON
constexpr char kResultWord[] = "@result";  // followed by the summary as wire JSON
constexpr char kStepWord[] = "@step";      // from ps 0; followed by the global step that the run has reached
// Followed by a task that this one has given up, and why: "ps 1: ...". On the standard input of a ps it is
// the parent's word for a task whose process was killed, and how.
constexpr char kLostWord[] = "@lost";
// Why this task ends, as a JSON string: an error, or a stop that was asked for.
constexpr char kErrorWord[] = "@error";
constexpr char kStoppedWord[] = "@stopped";

// The path that stands for standard output.
constexpr char kStandardOutput[] = "-";

// Returns the failure of standard output, with the remedy. If main gets one of EPIPE, the process ends by
// SIGPIPE.
FileError OutputFailed(int error_number);

// ErrorLines: messages on standard error in the name of the command, not of a task's log. Lines begin with
// "dtrain: "; if the config of a task or of `dtrain local` has log.format json, each is a JSON object. Owner:
// main. Thread: any, once `json` is set.
struct ErrorLines {
  bool json = false;   // set when the config has been read
  bool quiet = false;  // prints errors only

  // Prints `text`, one line or several. `event`: of the JSON of its last line (base/log.h); null: none.
  void Print(const std::string& text, LogLevel level = LogLevel::kError, const char* event = nullptr) const;
};

// Ending: how a run ended that is not done.
struct Ending {
  std::string status;
  int exit_code = 1;
  Blame blame;
};

// ResultFile: writes the JSON document of --result, and of the run's directory, atomically and at most once,
// however the run ends. It gathers for it what happens in the run. Owner: the command. Thread: any;
// ProcessEnd's thread may write while the run ends.
class ResultFile {
 public:
  // `path` is empty for no result, and "-" for standard output. Removes an older file there, so that a file
  // found later is this run's. Throws UserError now, not after hours, if no file can be written. `errors`
  // reports failures of WriteEnding(). `report_fd` is the pipe to the parent; -1: there is none.
  ResultFile(const std::string& path, const ErrorLines& errors, int report_fd = -1);
  ~ResultFile();

  // From now on the result is for this run: it has the config, and goes to the directory too, if there is
  // one.
  void Begin(const Config& config, std::unique_ptr<RunDirectory> directory);
  // Changes what the result says beside the figures.
  void Note(const std::function<void(RunAccount&)>& change);
  // The LogOptions::watch that takes the warnings of a log, and who has told an error.
  std::function<void(const std::string&, LogLevel, std::string_view)> Watch();

  // Report to the parent, if there is one. A failure shows when the result itself is written.
  void NoteBegun(const RunIdentity& identity);
  // What the run has reached now, or had when a task failed or was stopped: a summary without a status, which
  // a failure has as its own. What a ps 0 knows has precedence; its parent hears the step, unless that does
  // not read.
  void NoteReached(const RunSummary& reached);
  void NoteLost(const std::string& task, const std::string& why);
  // Tells the parent why this task ends; a stop that was asked for is a warning. The parent shows it, so the
  // task itself must not. Returns false if there is no parent.
  bool NoteEnd(LogLevel level, const std::string& why);
  // Writes the result of a run that is done. Only the first call writes. Returns false if the place that was
  // asked for failed. That is printed.
  [[nodiscard]] bool Write(const RunSummary& summary);
  // The same of a run that is not done, with `summary` as far as there is one. A failure does not matter to
  // the caller: the cause of the end and its exit code are more important. Returns false if the result was
  // written before.
  bool WriteEnding(const Ending& ending, RunSummary summary = {});
  // After the result is written: says what run.keep has removed, then, unless a parent says it, where the run
  // is and what to do with it, or that no model was kept.
  void TellDirectory() const;

  // From now on this process tells of the end of the run: it runs the command of run.on_end, if there is one,
  // and says that no model was kept if the run is to have no directory, or its could not be made
  // (`why_none`).
  void Lead(const Config& config, const std::string& why_none);

  // Whether the JSON goes to standard output.
  bool on_standard_output() const { return path_ == kStandardOutput; }
  // The directory of the run; null: there is none.
  RunDirectory* directory() const { return directory_.get(); }

 private:
  bool WriteLocked(const RunSummary& summary);
  void TellEndCommand(const RunSummary& summary) const;
  void WriteDocument(const std::string& json) const;
  // Returns 0 or the errno of the failure.
  int Report(const char* word, const std::string& text);

  std::mutex mutex_;
  bool written_ = false;
  RunAccount account_;
  std::optional<RunSummary> reached_;
  std::string earlier_;                                           // the document that was at `path`
  std::vector<std::pair<std::string, std::string>> errors_told_;  // task and text, the first ones
  std::unique_ptr<RunDirectory> directory_;
  RunConfig end_;            // whose command is run at the end
  ClusterConfig cluster_;    // of Begin()
  std::string no_model_;     // the line that says that none was kept; may be empty
  std::mutex report_mutex_;  // keeps lines whole
  const std::string path_;
  const ErrorLines& errors_;
  const int report_fd_;
};

// Returns how the run ends that has thrown `failure` in this process, which is not one of a task's.
Ending EndingOf(const std::exception& failure);

// Returns the time since this process was started.
double SecondsSinceStart();

// Returns the `status` of a task that ends with `code`. An end that was asked for (`stop`) is no failure,
// even if nothing could be saved.
std::string StatusOf(ExitCode code, const StopRequest& stop = {});

}  // namespace dtrain
