// Logger: the log of one task, with levels: "2026-01-31T12:00:00.123+01:00 worker 1 | text", and in a cluster
// of several hosts "worker 1@node7 | text". Lines go to standard error and, with log.dir, to a file of the
// task. With log.format json each line is one JSON object. It holds the host, the run once that is known, and
// the fields of a record beside the text. Owner: the task. Thread: any; each line is written whole.
#pragma once

#include <fmt/core.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace dtrain {

class Console;

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  bool json = false;
  std::string directory;  // empty: no file
  bool standard_error = true;
  bool quiet = false;          // standard error gets errors only
  bool brief = false;          // standard error, as text, gets no details
  bool show_host = false;      // in the text format; JSON always has it
  Console* console = nullptr;  // shared with other loggers; null: the logger makes one without a live line
  // Also gets each warning and error that is written, without time and level; called by any thread, with no
  // lock of the logger held; may be empty.
  std::function<void(const std::string& task, LogLevel level, std::string_view text)> watch = {};
};

// LogField: one figure of a record and its name in JSON: an integer, a real number, a word, or null when it
// does not apply.
struct LogField {
  struct Value {
    Value() = default;
    Value(int64_t number) : kind(kWhole), whole(number) {}
    Value(double number) : kind(kReal), real(number) {}
    Value(const char* text) : kind(kWord), word(text) {}
    enum { kNull, kWhole, kReal, kWord } kind = kNull;
    int64_t whole = 0;
    double real = 0;
    const char* word = nullptr;
  };
  const char* name;
  Value value;
};

// The member `event` of JSON lines that programs watch for; docs/operations.md describes each.
constexpr char kEventRunStarted[] = "run_started";
constexpr char kEventRunEnded[] = "run_ended";
constexpr char kEventWorkerLost[] = "worker_lost";
constexpr char kEventPsLost[] = "ps_lost";
constexpr char kEventRecovered[] = "recovered";
constexpr char kEventCheckpointSaved[] = "checkpoint_saved";
constexpr char kEventCheckpointFailed[] = "checkpoint_failed";
constexpr char kEventDivergence[] = "divergence";

class Logger {
 public:
  // `task` is "worker 1" in lines and becomes "worker-1.log" in `directory`, which is created. Throws
  // UserError if the file cannot be opened.
  Logger(std::string task, const LogOptions& options);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Write(LogLevel level, std::string_view text) { Record(level, text, {}); }
  // Writes a record. `fields` hold for programs what `text` says to people; they appear in JSON only.
  void Record(LogLevel level, std::string_view text, std::initializer_list<LogField> fields);
  // Writes a line about one of the events above.
  void Event(const char* event, LogLevel level, std::string_view text) {
    Record(level, text, {{"event", event}});
  }
  // The same as Record(), at any log.level.
  void RecordAlways(LogLevel level, std::string_view text, std::initializer_list<LogField> fields = {}) {
    Put(level, text, fields, /*shown=*/true);
  }
  // Writes a line of the run's result, at any log.level. As text only the file gets it, and with log.level
  // debug standard error: people read the result on standard output.
  void RecordResult(std::string_view text, std::initializer_list<LogField> fields = {}) {
    Put(LogLevel::kInfo, text, fields, /*shown=*/json_ || Enabled(LogLevel::kDebug));
  }
  // Writes a line to the file alone: standard error gets it from somebody else.
  void WriteToFile(LogLevel level, std::string_view text);
  // Sets the run that the lines from now on belong to.
  void SetRun(uint64_t id) { run_ = id; }
  bool Enabled(LogLevel level) const { return level >= level_; }
  bool json() const { return json_; }
  // Returns the line that Record() writes, with its newline.
  std::string Line(LogLevel level, std::string_view text, std::initializer_list<LogField> fields = {}) const;

  template <typename... Args>
  void Debug(fmt::format_string<Args...> format, Args&&... args) {
    if (Enabled(LogLevel::kDebug)) WriteFormatted(LogLevel::kDebug, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void Info(fmt::format_string<Args...> format, Args&&... args) {
    if (Enabled(LogLevel::kInfo)) WriteFormatted(LogLevel::kInfo, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void Warning(fmt::format_string<Args...> format, Args&&... args) {
    if (Enabled(LogLevel::kWarning))
      WriteFormatted(LogLevel::kWarning, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void Error(fmt::format_string<Args...> format, Args&&... args) {
    WriteFormatted(LogLevel::kError, format, fmt::make_format_args(args...));
  }

  // Writes a line that few read: a brief log has it in the file only.
  template <typename... Args>
  void Detail(fmt::format_string<Args...> format, Args&&... args) {
    if (!Enabled(LogLevel::kInfo)) return;
    const bool shown = json_ || !brief_ || Enabled(LogLevel::kDebug);
    Put(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...), {}, shown);
  }
  template <typename... Args>
  void Result(fmt::format_string<Args...> format, Args&&... args) {
    RecordResult(fmt::format(format, std::forward<Args>(args)...));
  }

  // Whether a live line would be shown; see Console::SetLive().
  bool live() const;
  void SetLive(std::string_view text);

  const std::string& task() const { return task_; }
  std::string path() const;  // of the log file; empty without one

 private:
  struct Sinks;

  // `shown`: standard error gets the line, too.
  void Put(LogLevel level, std::string_view text, std::initializer_list<LogField> fields, bool shown);
  void WriteFormatted(LogLevel level, fmt::string_view format, fmt::format_args args);
  // Needs the mutex of the sinks.
  void AppendLocked(const std::string& line);
  void Watch(LogLevel level, std::string_view text) const;

  const std::string task_;
  const std::string host_;
  const LogLevel level_;
  const bool json_;
  const bool quiet_;
  const bool brief_;
  const bool show_host_;
  std::atomic<uint64_t> run_{0};        // 0: not known yet
  const std::unique_ptr<Sinks> sinks_;  // behind a pointer, because nearly every file includes this header
};

// LogFile: appends to the log file of one task. If the file cannot be written, the run goes on and the
// failure is reported once, so that readers know that lines are missing. Owner: the task's Logger; or `dtrain
// launch`, which writes the lines of a remote task. Thread: one at a time.
class LogFile {
 public:
  // Opens "worker-1.log" for "worker 1" in `directory`, which is created. Throws UserError if the file cannot
  // be opened, and for a symbolic link in its place: in a directory that others may write, somebody else may
  // have made it.
  LogFile(const std::string& task, const std::string& directory);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Appends `line`, which ends with its newline. Returns a message for the user at the first failure,
  // otherwise an empty text.
  std::string Append(std::string_view line);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
  bool failed_ = false;
};

}  // namespace dtrain
