// How a command reports: ErrorLines are its lines on standard error, ResultFile is the JSON document of
// --result, and what a task tells the process that has started it.
#pragma once

#include <mutex>
#include <string>

#include "base/error.h"
#include "base/signals.h"

#include "trainer/result/run_summary.h"

namespace dtrain {

// A task that was started with --reports tells its parent on standard output, in lines that begin so.
constexpr char kBegunWord[] = "@begun";    // the run
constexpr char kResultWord[] = "@result";  // and wire JSON
constexpr char kLostWord[] = "@lost";      // and the name of a task that this one has given up, "ps 1"

// ErrorLines: what a command says on standard error in its own name rather than in a task's log: lines that
// begin with "dtrain: " or, where a task or `dtrain local` has read log.format: json, one object for each.
// Owner: main. Thread: any, once `json` is set.
struct ErrorLines {
  bool json = false;  // set as soon as the config has told

  // `text`: one line or several.
  void Print(const std::string& text) const;
};

// ResultFile: the destination of --result: JSON, whole or absent, written once whatever the ending.
// Owner: the command. Thread: any; ProcessEnd's thread may write while the run ends.
class ResultFile {
 public:
  // `path`, empty for none: an older file there is removed, so that a file found there later is this run's.
  // Throws UserError at once, not after hours, where no file can be written.
  // `errors` gets what WriteEnding() cannot write.
  // `report_fd`: where the parent reads; -1: there is none.
  ResultFile(const std::string& path, const ErrorLines& errors, int report_fd = -1);

  // Tell the parent, where there is one. A report that fails shows when the result itself is written.
  void NoteBegun();
  void NoteLost(const std::string& task) { Report(kLostWord, task); }
  // The first call writes, later ones do nothing. Throws IoError when the disk has failed meanwhile.
  void Write(const RunSummary& summary);
  // The same for a run that is not done. A write that fails is reported, not thrown: how the run ended
  // matters more, and its exit code stays.
  void WriteEnding(const RunSummary& summary);
  // The same for a run that has no summary yet.
  void WriteEnding(const std::string& status);

 private:
  // Returns the errno of a failure, or 0.
  int Report(const char* word, const std::string& text);

  std::mutex mutex_;
  bool written_ = false;
  std::mutex report_mutex_;  // lines are not mixed
  const std::string path_;
  const ErrorLines& errors_;
  const int report_fd_;
};

// Since this process was executed.
double SecondsSinceStart();

// The `status` of a task that ends with this code. `stop`: an end that was asked for, and could not be saved,
// is no failure.
std::string StatusOf(ExitCode code, const StopRequest& stop = {});

}  // namespace dtrain
