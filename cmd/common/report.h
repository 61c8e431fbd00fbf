// Reports of a command: ErrorLines are its lines on standard error, ResultFile is the JSON document of
// --result. A child task reports to its parent on standard output.
#pragma once

#include <mutex>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"

#include "trainer/result/run_summary.h"

namespace dtrain {

// The first words of a report line that a task started with --reports writes to standard output.
constexpr char kBegunWord[] = "@begun";    // the run has begun
constexpr char kResultWord[] = "@result";  // followed by the summary as wire JSON
constexpr char kLostWord[] = "@lost";      // followed by a task that this one has given up, "ps 1"
// Why this task ends, as a JSON string: an error, or a stop that was asked for.
constexpr char kErrorWord[] = "@error";
constexpr char kStoppedWord[] = "@stopped";

// The path that stands for standard output.
constexpr char kStandardOutput[] = "-";

// ErrorLines: messages on standard error in the name of the command, not of a task's log. Lines begin with
// "dtrain: "; if the config of a task or of `dtrain local` has log.format json, each is a JSON object. Owner:
// main. Thread: any, once `json` is set.
struct ErrorLines {
  bool json = false;   // set when the config has been read
  bool quiet = false;  // prints errors only

  // Prints `text`, one line or several. `event`: of its JSON lines (base/log.h); null: none.
  void Print(const std::string& text, LogLevel level = LogLevel::kError, const char* event = nullptr) const;
};

// ResultFile: writes the JSON document of --result, atomically and at most once, however the run ends. Owner:
// the command. Thread: any; ProcessEnd's thread may write while the run ends.
class ResultFile {
 public:
  // `path` is empty for no result, and "-" for standard output. Removes an older file there, so that a file found later is this run's.
  // Throws UserError now, not after hours, if no file can be written. `errors` reports failures of
  // WriteEnding(). `report_fd` is the pipe to the parent; -1: there is none.
  ResultFile(const std::string& path, const ErrorLines& errors, int report_fd = -1);

  // Report to the parent, if there is one. A failure shows when the result itself is written.
  void NoteBegun();
  void NoteLost(const std::string& task) { Report(kLostWord, task); }
  // Tells the parent why this task ends; a stop that was asked for is a warning. The parent shows it, so the
  // task itself must not. Returns false if there is no parent.
  bool NoteEnd(LogLevel level, const std::string& why);
  // Writes the result. Only the first call writes. Throws IoError if the disk fails.
  void Write(const RunSummary& summary);
  // Writes the result of a run that is not complete. A failure is printed and not thrown, because the cause
  // of the end and its exit code matter more.
  void WriteEnding(const RunSummary& summary);
  // The same for a run that has no summary yet.
  void WriteEnding(const std::string& status);

 private:
  void WriteDocument(const std::string& json) const;
  // Returns 0 or the errno of the failure.
  int Report(const char* word, const std::string& text);

  std::mutex mutex_;
  bool written_ = false;
  std::mutex report_mutex_;  // keeps lines whole
  const std::string path_;
  const ErrorLines& errors_;
  const int report_fd_;
};

// Returns the time since this process was started.
double SecondsSinceStart();

// Returns the `status` of a task that ends with `code`. An end that was asked for (`stop`) is no failure,
// even if nothing could be saved.
std::string StatusOf(ExitCode code, const StopRequest& stop = {});

}  // namespace dtrain
