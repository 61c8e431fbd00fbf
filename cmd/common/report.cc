#include "cmd/common/report.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "base/clock.h"
#include "base/console.h"
#include "base/file.h"
#include "base/log.h"

namespace dtrain {
namespace {

const std::string kBegun = "\n";  // before the result, where JSON takes any blanks

}  // namespace

void ErrorLines::Print(const std::string& text) const {
  LogOptions options;
  options.json = true;
  Logger log("dtrain", options);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (json) {
      log.Error("{}", line);
    } else {
      StandardError().Write(fmt::format("dtrain: {}\n", line));
    }
  }
}

ResultFile::ResultFile(const std::string& path, const ErrorLines& errors, int fd)
    : path_(path), errors_(errors), fd_(fd) {
  if (path_.empty()) return;
  struct stat found {};
  if (stat(path_.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
    throw UserError("--result {}: is not a regular file. Name a file.", path_);
  }
  // Written once for the proof, then removed.
  try {
    WriteFileAtomically(path_, "");
  } catch (const IoError& error) {
    throw UserError("--result {}", error.what());
  }
  unlink(path_.c_str());
}

void ResultFile::NoteBegun() {
  std::lock_guard<std::mutex> hold(mutex_);
  // A failure shows when the result itself is written.
  if (fd_ >= 0 && !written_) ReplaceResult(fd_, "");
}

void ResultFile::Write(const RunSummary& summary) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (written_) return;
  written_ = true;
  if (!path_.empty()) WriteFileAtomically(path_, ToJson(summary));
  if (fd_ < 0) return;
  if (const int failed = ReplaceResult(fd_, ToWireJson(summary))) {
    throw IoError("the result cannot be handed to the parent: {}", ErrnoText(failed));
  }
}

int ReplaceResult(int fd, const std::string& text) {
  const bool file = lseek(fd, 0, SEEK_SET) == 0;
  if (!file) return errno == ESPIPE ? WriteAll(fd, text + "\n") : errno;
  const std::string all = kBegun + text;
  if (const int failed = WriteAll(fd, all)) return failed;
  return ftruncate(fd, static_cast<off_t>(all.size())) == 0 ? 0 : errno;
}

void ResultFile::WriteEnding(const RunSummary& summary) {
  try {
    Write(summary);
  } catch (const Failure& failure) {
    errors_.Print(failure.what());
  }
}

void ResultFile::WriteEnding(const std::string& status) {
  RunSummary summary;
  summary.status = status;
  summary.wall_s = SecondsSinceStart();
  WriteEnding(summary);
}

double SecondsSinceStart() { return static_cast<double>(WallNanos() - ProcessStartWallNanos()) / 1e9; }

std::string StatusOf(ExitCode code, const StopRequest& stop) {
  if (code == ExitCode::kInternal && stop.signal() != 0) return "stopped";
  switch (code) {
    case ExitCode::kOk:
      return "done";
    case ExitCode::kDiverged:
      return "diverged";
    case ExitCode::kPeerLost:
      return "peer_lost";
    case ExitCode::kInterrupted:
    case ExitCode::kTerminated:
      return "stopped";
    case ExitCode::kInternal:
    case ExitCode::kUser:
      return "failed";
  }
  return "failed";
}

}  // namespace dtrain
