// ResultFile: the destination of `--result`: JSON, whole or absent, written once whatever the ending.
// Owner: the command. Thread: any; a signal thread may write while the run ends.
#pragma once

#include <mutex>
#include <string>

#include "base/error.h"
#include "base/signals.h"
#include "cmd/error_lines.h"
#include "trainer/task/run_summary.h"

namespace dtrain {

class ResultFile {
 public:
  // `path`, empty for none: an older file there is removed, so that what lies there later is this run's.
  // Throws UserError when none can be written there: at the start, not after hours.
  // `errors` is where a failed WriteEnding() is told.
  // `fd`, -1 for none: a file of a `dtrain local`, which completes what is written there as wire JSON; it may
  // hold what an earlier process has written for the same task. Or a pipe: then each is a line.
  ResultFile(const std::string& path, const ErrorLines& errors, int fd = -1);

  // The run has begun: the `dtrain local` behind `fd` sees something there.
  void NoteBegun();
  // The first call writes, later ones do nothing. Throws IoError when the disk has failed meanwhile.
  void Write(const RunSummary& summary);
  // The same for a run that is not done. A write that fails is reported, not thrown: how the run ended
  // matters more, and its exit code stays.
  void WriteEnding(const RunSummary& summary);
  // Of one that has not got to its own summary.
  void WriteEnding(const std::string& status);

 private:
  std::mutex mutex_;
  bool written_ = false;
  const std::string path_;
  const ErrorLines& errors_;
  const int fd_;
};

// A begun run, or `text` as its result, in place of all that the file `fd` holds; of a pipe: behind it.
// Returns the errno of a failure, or 0.
int ReplaceResult(int fd, const std::string& text);

// Since this process was executed.
double SecondsSinceStart();

// The `status` of a task that ends with this code. `stop`: an end that was asked for, and could not be saved,
// is no failure.
std::string StatusOf(ExitCode code, const StopRequest& stop = {});

}  // namespace dtrain
