#include "cmd/load_config.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "trainer/config/dump.h"

namespace dtrain {

int ProcessExitCode(ExitCode code, const FailureConfig& failure) {
  return static_cast<int>(code == ExitCode::kPeerLost ? failure.peer_lost_exit : static_cast<int64_t>(code));
}

std::string SetAddresses(const std::string& key, const std::vector<std::string>& addresses) {
  return fmt::format("{}=[\"{}\"]", key, fmt::join(addresses, "\", \""));
}

milliseconds GraceOf(const FailureConfig& failure) {
  return milliseconds(static_cast<int64_t>(failure.grace_s * 1000));
}

void RequireRegularFile(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode))
    return;  // what is not there is told elsewhere
  throw UserError("--config {}: is no regular file, and each task reads it anew. Save it to a file.", path);
}

int DumpEffectiveConfig(const ConfigArguments& arguments, const LoadOptions& options) {
  fmt::print("{}", DumpConfig(LoadConfig(arguments.path, arguments.sets, options)));
  return 0;
}

LogOptions LogOptionsOf(const LogConfig& config, Console& console) {
  LogOptions options;
  options.level = static_cast<LogLevel>(config.level);
  options.json = config.json;
  options.directory = config.dir;
  options.console = &console;
  return options;
}

LogOptions OwnLogOptions(const LogConfig& config, Console& console) {
  LogOptions options = LogOptionsOf(config, console);
  options.directory.clear();
  return options;
}

LiveLine LiveLineOf(const LogConfig& config) {
  const bool shown = !config.json && config.level <= static_cast<int>(LogLevel::kInfo);
  return shown && Console::IsTerminal() ? LiveLine::kDrawn : LiveLine::kNone;
}

}  // namespace dtrain
