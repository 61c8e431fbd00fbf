// How a command reports: ErrorLines are its lines on standard error, ResultFile is the JSON document of
// --result.
#pragma once

#include <mutex>
#include <string>

#include "base/error.h"
#include "base/signals.h"

#include "trainer/result/run_summary.h"

namespace dtrain {

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
  // `fd`, -1 for none: where the result goes as wire JSON besides. A file of `dtrain local`, which may hold
  // what an earlier process has written for the same task; or a pipe, where each write is one line.
  ResultFile(const std::string& path, const ErrorLines& errors, int fd = -1);

  // The run has begun: the `dtrain local` behind `fd` sees something there.
  void NoteBegun();
  // The first call writes, later ones do nothing. Throws IoError when the disk has failed meanwhile.
  void Write(const RunSummary& summary);
  // The same for a run that is not done. A write that fails is reported, not thrown: how the run ended
  // matters more, and its exit code stays.
  void WriteEnding(const RunSummary& summary);
  // The same for a run that has no summary yet.
  void WriteEnding(const std::string& status);

 private:
  std::mutex mutex_;
  bool written_ = false;
  const std::string path_;
  const ErrorLines& errors_;
  const int fd_;
};

// Replaces what the file `fd` holds by the mark of a begun run and `text`, its result; adds them to a pipe.
// Returns the errno of a failure, or 0.
int ReplaceResult(int fd, const std::string& text);

// Since this process was executed.
double SecondsSinceStart();

// The `status` of a task that ends with this code. `stop`: an end that was asked for, and could not be saved,
// is no failure.
std::string StatusOf(ExitCode code, const StopRequest& stop = {});

}  // namespace dtrain
