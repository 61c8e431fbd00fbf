#include "cmd/common/report.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "base/clock.h"
#include "base/console.h"
#include "base/json.h"
#include "base/log.h"
#include "base/names.h"
#include "base/printable.h"
#include "cmd/common/end_command.h"
#include "cmd/common/program.h"
#include "cmd/common/run_directory.h"
#include "cmd/common/run_files.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/config/dump.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

constexpr size_t kMaxErrorsTold = 100;
constexpr size_t kResultBytes = 64 << 10;  // more than most results

// Returns the host in the spec's address of a task; empty if the spec has no such task.
std::string SpecHostOf(const ClusterConfig& cluster, TaskId task) {
  const std::vector<std::string>& addresses = task.role == Role::kPs ? cluster.ps : cluster.worker;
  const auto index = static_cast<size_t>(task.index);
  return index < addresses.size() ? HostOf(addresses[index]) : "";
}

}  // namespace

FileError OutputFailed(int error_number) {
  return FileError(fmt::format("standard output: {}. {}.", ErrnoText(error_number),
                               IsLackOfRoom(error_number) ? "Free some space, or send it to another disk"
                                                          : "Send it to a file or a pipe"),
                   error_number);
}

void ErrorLines::Print(const std::string& text, LogLevel level, const char* event) const {
  if (quiet && level != LogLevel::kError) return;
  LogOptions options;
  options.json = true;
  Logger log("dtrain", options);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (json && event != nullptr && lines.peek() == EOF) {
      log.Event(event, level, line);
    } else if (json) {
      log.Write(level, line);
    } else {
      const std::string shown = fmt::format("dtrain: {}\n", line);
      const bool red = level == LogLevel::kError && ShowsColours(STDERR_FILENO);
      StandardError().Write(red ? Coloured(Colour::kRed, shown) : shown);
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
  earlier_ = ReadRunFile(path_);
  // Writes a file of the size of a result to prove that it can, and removes it.
  try {
    WriteFileAtomically(path_, std::string(kResultBytes, ' '));
  } catch (const FileError& error) {
    ThrowUnwritable(fmt::format("--result {}", error.what()), error.error_number());
  }
  unlink(path_.c_str());
}

ResultFile::~ResultFile() = default;

void ResultFile::Begin(const Config& config, std::unique_ptr<RunDirectory> directory) {
  const std::lock_guard<std::mutex> hold(mutex_);
  account_.config = FlatConfig(config);
  account_.config_digest = ConfigDigest(config);
  account_.seed = config.model.init.seed;
  cluster_ = config.cluster;
  directory_ = std::move(directory);
}

void ResultFile::Note(const std::function<void(RunAccount&)>& change) {
  const std::lock_guard<std::mutex> hold(mutex_);
  change(account_);
}

std::function<void(const std::string&, LogLevel, std::string_view)> ResultFile::Watch() {
  return [this](const std::string& task, LogLevel level, std::string_view text) {
    const std::lock_guard<std::mutex> hold(mutex_);
    if (level == LogLevel::kWarning) return account_.AddWarning(task, std::string(text));
    if (errors_told_.size() < kMaxErrorsTold) errors_told_.emplace_back(task, text);
  };
}

void ResultFile::NoteBegun(const RunIdentity& identity) {
  const std::lock_guard<std::mutex> hold(mutex_);
  account_.Learn(identity);
  if (!written_) Report(kBegunWord, IdentityToJson(identity));
}

void ResultFile::NoteLost(const std::string& task, const std::string& why) {
  Report(kLostWord, task + ": " + Printable(why));
}

void ResultFile::NoteReached(const RunSummary& reached) {
  const std::lock_guard<std::mutex> hold(mutex_);
  const bool of_leader = !reached.identity.run_id.empty();
  if (!of_leader && reached_ && !reached_->identity.run_id.empty()) return;
  reached_ = reached;
  pollfd parent = {report_fd_, POLLOUT, 0};
  if (of_leader && !written_ && poll(&parent, 1, 0) > 0) {
    Report(kStepWord, std::to_string(reached.global_step));
  }
}

bool ResultFile::Write(const RunSummary& summary) {
  const std::lock_guard<std::mutex> hold(mutex_);
  if (written_) return true;
  account_.exit_code = 0;
  account_.blame = {};
  return WriteLocked(summary);
}

bool ResultFile::WriteEnding(const Ending& ending, RunSummary summary) {
  const std::lock_guard<std::mutex> hold(mutex_);
  if (written_) return false;
  account_.exit_code = ending.exit_code;
  account_.blame = ending.blame;
  // If the tasks are threads, the one that has logged this error is to blame.
  for (const auto& [task, text] : errors_told_) {
    const std::optional<TaskId> teller = TaskNamed(task);
    if (account_.blame.task || !teller || text != account_.blame.error) continue;
    account_.blame = BlameFor(*teller, account_.blame.host, text);
  }
  // The host of another task may be known from the start of the run; that of one that never came is where the
  // spec says it is.
  if (account_.blame.task && account_.blame.host.empty()) {
    const auto& hosts = account_.identity.hosts;
    const auto found = hosts.find(TaskName(*account_.blame.task));
    account_.blame.host = found != hosts.end() ? found->second : SpecHostOf(cluster_, *account_.blame.task);
  }
  if (reached_ && summary.global_step == 0 && summary.local_steps.empty()) summary = *reached_;
  summary.status = ending.status;
  if (summary.wall_s == 0) summary.wall_s = SecondsSinceStart();
  WriteLocked(summary);
  return true;
}

// On a full disk the result still goes to the parent.
bool ResultFile::WriteLocked(const RunSummary& summary) {
  written_ = true;
  if (summary.status != "done") no_model_.clear();
  account_.Learn(summary.identity);
  account_.version = kVersion;
  account_.commit = ProgramCommit();
  account_.start_nanos = ProcessStartWallNanos();
  account_.end_nanos = WallNanos();
  std::string earlier = directory_ ? directory_->EarlierResult() : std::string();
  if (earlier.empty()) earlier = earlier_;
  const std::string document = ToJson(summary, account_, WithPresentKeys(Json::Parse(earlier)));
  const auto try_to = [&](const auto& write) {
    try {
      write();
      return true;
    } catch (const Failure& failure) {
      errors_.Print(failure.what());
      return false;
    }
  };
  bool is_kept = path_.empty() || try_to([&] { WriteDocument(document); });
  const bool in_directory = !directory_ || try_to([&] { directory_->End(summary, account_, document); });
  if (path_.empty()) is_kept = in_directory;
  TellEndCommand(summary);
  const int error = Report(kResultWord, ToWireJson(summary));
  if (error != 0) errors_.Print("the result cannot be handed to the parent: " + ErrnoText(error));
  return is_kept && error == 0;
}

void ResultFile::Lead(const Config& config, const std::string& why_none) {
  const std::lock_guard<std::mutex> hold(mutex_);
  end_ = config.run;
  if (!config.checkpoint.dir.empty() || config.run.has_directory()) return;
  if (why_none.empty() && config.log.level > static_cast<int>(LogLevel::kInfo)) return;  // it was asked for
  no_model_ = fmt::format("no model was kept{}; to keep one: --run DIR, or checkpoint.dir",
                          why_none.empty() ? "" : ", since no directory could be made (" + why_none + ")");
}

// A command that fails changes neither the result nor the exit code of the run.
void ResultFile::TellEndCommand(const RunSummary& summary) const {
  if (end_.on_end.empty()) return;
  const std::string file = path_ == kStandardOutput ? "" : path_;
  const std::string in_directory = directory_ ? directory_->ResultPath() : "";
  const std::string failed =
      RunEndCommand(end_.on_end,
                    {{"DTRAIN_STATUS", summary.status},
                     {"DTRAIN_EXIT_CODE", account_.exit_code ? std::to_string(*account_.exit_code) : ""},
                     {"DTRAIN_ERROR", BlameText(account_.blame)},
                     {"DTRAIN_RUN", directory_ ? directory_->path() : ""},
                     {"DTRAIN_RESULT", in_directory.empty() ? file : in_directory}},
                    milliseconds(static_cast<int64_t>(1000 * end_.on_end_timeout_s)));
  if (!failed.empty()) {
    errors_.Print(fmt::format("run.on_end: {}: {}", end_.on_end, failed), LogLevel::kWarning);
  }
}

void ResultFile::TellDirectory() const {
  errors_.Print(no_model_, LogLevel::kWarning);
  if (!directory_) return;
  for (const std::string& line : directory_->RemoveOld()) errors_.Print(line, LogLevel::kInfo);
  if (report_fd_ < 0) errors_.Print(directory_->NextLine(), LogLevel::kInfo);
}

void ResultFile::WriteDocument(const std::string& json) const {
  if (path_ != kStandardOutput) {
    if (!path_.empty()) WriteFileAtomically(path_, json);
    return;
  }
  const int failed = WriteAll(STDOUT_FILENO, json);
  if (failed != 0) throw OutputFailed(failed);
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

Ending EndingOf(const std::exception& failure) {
  const auto* const known = dynamic_cast<const Failure*>(&failure);
  const ExitCode code = known != nullptr ? known->code() : ExitCode::kInternal;
  const std::string text = FailureText(failure);
  return {
      StatusOf(code), static_cast<int>(code), {std::nullopt, HostName(), text.substr(0, text.find('\n'))}};
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
