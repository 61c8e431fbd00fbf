// Levelled log lines of one task: "2026-01-31 12:00:00.123 worker 1 | text" on standard error and, with
// log.dir, in a file of the task's own; or one JSON object a line, where a record's fields stand beside the
// text. Thread: any; each line is written whole. Owner: the task.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/console.h"
#include "base/log_file.h"

namespace dtrain {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  bool json = false;
  std::string directory;  // empty: no file
  bool standard_error = true;
  Console* console = nullptr;  // shared with other loggers; null: one of its own, without a live line
};

// One figure of a record, by its name in JSON; null where it does not apply.
struct LogField {
  const char* name;
  std::variant<std::monostate, int64_t, double> value;
};

class Logger {
 public:
  // `task` is "worker 1" in lines and becomes "worker-1.log" in `directory`, which is created.
  // Throws UserError where the file cannot be opened.
  Logger(std::string task, const LogOptions& options);
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Write(LogLevel level, std::string_view text) { Record(level, text, {}); }
  // `fields` say in JSON what `text` says to people.
  void Record(LogLevel level, std::string_view text, std::initializer_list<LogField> fields);
  bool Enabled(LogLevel level) const { return level >= options_.level; }

  template <typename... Args>
  void Debug(fmt::format_string<Args...> format, Args&&... args) {
    if (Enabled(LogLevel::kDebug)) Write(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void Info(fmt::format_string<Args...> format, Args&&... args) {
    if (Enabled(LogLevel::kInfo)) Write(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void Warning(fmt::format_string<Args...> format, Args&&... args) {
    if (Enabled(LogLevel::kWarning)) {
      Write(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
    }
  }
  template <typename... Args>
  void Error(fmt::format_string<Args...> format, Args&&... args) {
    Write(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
  }

  // Whether a live line would be shown; see Console::SetLive().
  bool live() const { return console_.live(); }
  void SetLive(std::string_view text) { console_.SetLive(text); }

  const std::string& task() const { return task_; }
  std::string path() const { return file_ ? file_->path() : ""; }  // of the file

 private:
  std::string Line(LogLevel level, std::string_view text, std::initializer_list<LogField> fields) const;

  const std::string task_;
  const LogOptions options_;
  Console own_console_{LiveLine::kNone};
  Console& console_;
  std::optional<LogFile> file_;
  std::mutex mutex_;  // keeps a line that reaches both sinks in one order
};

}  // namespace dtrain
