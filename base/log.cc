#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/write_all.h"

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

std::string JsonLine(const std::string& time, const std::string& task, LogLevel level, std::string_view text,
                     std::initializer_list<LogField> fields) {
  nlohmann::ordered_json line = {
      {"time", time}, {"task", task}, {"level", LevelName(level)}, {"text", std::string(text)}};
  for (const LogField& field : fields) {
    nlohmann::ordered_json& value = line[field.name];
    if (const auto* whole = std::get_if<int64_t>(&field.value)) value = *whole;
    if (const auto* number = std::get_if<double>(&field.value)) value = *number;
  }
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string TextLine(const std::string& time, const std::string& task, LogLevel level,
                     std::string_view text) {
  const char* mark = level == LogLevel::kError ? "error: " : level == LogLevel::kWarning ? "warning: " : "";
  return fmt::format("{} {} | {}{}\n", time, task, mark, text);
}

}  // namespace

Logger::Logger(std::string task, const LogOptions& options)
    : task_(std::move(task)),
      options_(options),
      console_(options.console != nullptr ? *options.console : own_console_) {
  if (options_.directory.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(options_.directory, failed);
  std::string name = task_;
  std::replace(name.begin(), name.end(), ' ', '-');
  path_ = options_.directory + "/" + name + ".log";
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) {
    throw UserError("{}: cannot be opened for the log: {}. Set log.dir to a writable directory.", path_,
                    ErrnoText(errno));
  }
}

Logger::~Logger() {
  if (file_ >= 0) close(file_);
}

void Logger::Record(LogLevel level, std::string_view text, std::initializer_list<LogField> fields) {
  if (!Enabled(level)) return;
  const std::string time = WallText(WallNanos());
  const std::string line =
      options_.json ? JsonLine(time, task_, level, text, fields) : TextLine(time, task_, level, text);
  std::lock_guard<std::mutex> hold(mutex_);
  if (options_.standard_error) console_.WriteLine(line);
  if (file_ >= 0) WriteAll(file_, line);  // one that cannot be written must not end a run
}

}  // namespace dtrain
