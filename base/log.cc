#include "base/log.h"

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/patient_output.h"

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
  if (!options_.directory.empty()) file_.emplace(task_, options_.directory);
}

std::string Logger::Line(LogLevel level, std::string_view text,
                         std::initializer_list<LogField> fields) const {
  const std::string time = WallText(WallNanos());
  return options_.json ? JsonLine(time, task_, level, text, fields) : TextLine(time, task_, level, text);
}

void Logger::Record(LogLevel level, std::string_view text, std::initializer_list<LogField> fields) {
  if (!Enabled(level)) return;
  const std::string line = Line(level, text, fields);
  std::lock_guard<std::mutex> hold(mutex_);
  if (options_.standard_error) {
    const int64_t missing = StandardError().TakeMissing();
    if (missing > 0) console_.WriteLine(Line(LogLevel::kWarning, MissingText(missing), {}));
    console_.WriteLine(line);
  }
  if (!file_) return;
  const std::string failure = file_->Append(line);
  if (!failure.empty()) console_.WriteLine(Line(LogLevel::kWarning, failure, {}));
}

}  // namespace dtrain
