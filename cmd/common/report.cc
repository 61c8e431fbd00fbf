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
#include "base/json.h"
#include "base/log.h"

namespace dtrain {

void ErrorLines::Print(const std::string& text, LogLevel level, const char* event) const {
  if (quiet && level != LogLevel::kError) return;
  LogOptions options;
  options.json = true;
  Logger log("dtrain", options);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (json && event != nullptr) {
      log.Event(event, level, line);
    } else if (json) {
      log.Write(level, line);
    } else {
      StandardError().Write(fmt::format("dtrain: {}\n", line));
    }
  }
}

ResultFile::ResultFile(const std::string& path, const ErrorLines& errors, int report_fd)
    : path_(path), errors_(errors), report_fd_(report_fd) {
  if (path_.empty() || path_ == kStandardOutput) return;
  struct stat found {};
  if (stat(path_.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
    throw UserError("--result {}: is not a regular file. Name a file.", path_);
  }
  // Writes a file to prove that it can, and removes it.
  try {
    WriteFileAtomically(path_, "");
  } catch (const IoError& error) {
    throw UserError("--result {}", error.what());
  }
  unlink(path_.c_str());
}

void ResultFile::NoteBegun() {
  std::lock_guard<std::mutex> hold(mutex_);
  if (!written_) Report(kBegunWord, "");
}

void ResultFile::Write(const RunSummary& summary) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (written_) return;
  written_ = true;
  WriteDocument(ToJson(summary));
  if (const int failed = Report(kResultWord, ToWireJson(summary))) {
    throw IoError("the result cannot be handed to the parent: {}", ErrnoText(failed));
  }
}

void ResultFile::WriteDocument(const std::string& json) const {
  if (path_ != kStandardOutput) {
    if (!path_.empty()) WriteFileAtomically(path_, json);
    return;
  }
  const int failed = WriteAll(STDOUT_FILENO, json);
  if (failed != 0) throw IoError("standard output: {}", ErrnoText(failed));
}

bool ResultFile::NoteEnd(LogLevel level, const std::string& why) {
  if (report_fd_ < 0) return false;
  Report(level == LogLevel::kError ? kErrorWord : kStoppedWord, Json(why).dump());
  return true;
}

int ResultFile::Report(const char* word, const std::string& text) {
  if (report_fd_ < 0) return 0;
  std::lock_guard<std::mutex> hold(report_mutex_);
  return WriteAll(report_fd_, fmt::format("{}{}{}\n", word, text.empty() ? "" : " ", text));
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
