#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <mutex>
#include <optional>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/names.h"

namespace dtrain {
namespace {

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "";
}

void AddFields(std::initializer_list<LogField> fields, Json* line) {
  for (const LogField& field : fields) {
    Json& value = (*line)[field.name];
    if (field.value.kind == LogField::Value::kWhole) value = field.value.whole;
    if (field.value.kind == LogField::Value::kReal) value = field.value.real;
    if (field.value.kind == LogField::Value::kWord) value = field.value.word;
  }
}

std::string TextLine(const std::string& time, const std::string& who, LogLevel level, std::string_view text) {
  const char* mark = level == LogLevel::kError ? "error: " : level == LogLevel::kWarning ? "warning: " : "";
  return fmt::format("{} {} | {}{}\n", time, who, mark, text);
}

}  // namespace

// The destinations of the lines.
struct Logger::Sinks {
  Console own_console{LiveLine::kNone};
  Console& console;
  const bool standard_error;
  std::optional<LogFile> file;
  const decltype(LogOptions::watch) watch;
  std::mutex mutex;  // keeps lines in the same order in both sinks

  explicit Sinks(const LogOptions& options)
      : console(options.console != nullptr ? *options.console : own_console),
        standard_error(options.standard_error),
        watch(options.watch) {}
};

Logger::Logger(std::string task, const LogOptions& options)
    : task_(std::move(task)),
      host_(HostName()),
      level_(options.level),
      json_(options.json),
      quiet_(options.quiet),
      brief_(options.brief),
      show_host_(options.show_host),
      sinks_(std::make_unique<Sinks>(options)) {
  if (!options.directory.empty()) sinks_->file.emplace(task_, options.directory);
}

Logger::~Logger() = default;

bool Logger::live() const { return sinks_->console.live(); }

void Logger::SetLive(std::string_view text) { sinks_->console.SetLive(text); }

std::string Logger::path() const { return sinks_->file ? sinks_->file->path() : ""; }

std::string Logger::Line(LogLevel level, std::string_view text,
                         std::initializer_list<LogField> fields) const {
  const std::string time = WallText(WallNanos());
  if (!json_) return TextLine(time, show_host_ ? task_ + "@" + host_ : task_, level, text);
  Json line = {{"time", time}, {"task", task_}, {"host", host_}};
  if (run_ != 0) line["run"] = fmt::format("{:016x}", run_.load());
  line["level"] = LevelName(level);
  line["text"] = std::string(text);
  AddFields(fields, &line);
  return line.dump() + "\n";
}

void Logger::WriteFormatted(LogLevel level, fmt::string_view format, fmt::format_args args) {
  Record(level, fmt::vformat(format, args), {});
}

void Logger::Record(LogLevel level, std::string_view text, std::initializer_list<LogField> fields) {
  if (Enabled(level)) RecordAlways(level, text, fields);
}

void Logger::Put(LogLevel level, std::string_view text, std::initializer_list<LogField> fields, bool shown) {
  Watch(level, text);
  const std::string line = Line(level, text, fields);
  Console& console = sinks_->console;
  std::lock_guard<std::mutex> hold(sinks_->mutex);
  if (shown && sinks_->standard_error && (!quiet_ || level == LogLevel::kError)) {
    const int64_t missing = StandardError().TakeMissing();
    if (missing > 0) console.WriteLine(Line(LogLevel::kWarning, MissingText(missing), {}));
    console.WriteLine(line);
  }
  AppendLocked(line);
}

void Logger::WriteToFile(LogLevel level, std::string_view text) {
  Watch(level, text);
  const std::string line = Line(level, text);
  std::lock_guard<std::mutex> hold(sinks_->mutex);
  AppendLocked(line);
}

void Logger::Watch(LogLevel level, std::string_view text) const {
  if (sinks_->watch && level >= LogLevel::kWarning) sinks_->watch(task_, level, text);
}

void Logger::AppendLocked(const std::string& line) {
  if (!sinks_->file) return;
  const std::string failure = sinks_->file->Append(line);
  if (!failure.empty()) sinks_->console.WriteLine(Line(LogLevel::kWarning, failure, {}));
}

LogFile::LogFile(const std::string& task, const std::string& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  std::string name = task;
  std::replace(name.begin(), name.end(), ' ', '-');
  path_ = directory + "/" + name + ".log";
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0 && errno == ELOOP) {
    throw UserError("{}: is a symbolic link, which may lead into a file of something else. Remove it.",
                    path_);
  }
  if (fd_ < 0) {
    const int reason = failed ? failed.value() : errno;
    ThrowUnwritable(
        fmt::format("{}: cannot be opened for the log: {}. Free some space, or set log.dir to a writable "
                    "directory.",
                    path_, ErrnoText(reason)),
        reason);
  }
}

LogFile::~LogFile() { close(fd_); }

std::string LogFile::Append(std::string_view line) {
  const int failed = WriteAll(fd_, line);
  if (failed == 0 || std::exchange(failed_, true)) return "";
  return fmt::format(
      "{}: cannot be written: {}. Lines are missing there from here on, until its disk has room.", path_,
      ErrnoText(failed));
}

}  // namespace dtrain
