#include "cmd/load_config.h"

#include <fmt/core.h>

#include "trainer/config/dump.h"

namespace dtrain {

int DumpEffectiveConfig(const ConfigArguments& arguments, const LoadOptions& options) {
  fmt::print("{}", DumpConfig(LoadConfig(arguments.path, arguments.sets, options)));
  return 0;
}

LogOptions LogOptionsOf(const LogConfig& config) {
  LogOptions options;
  options.level = static_cast<LogLevel>(config.level);
  options.json = config.json;
  options.directory = config.dir;
  return options;
}

}  // namespace dtrain
