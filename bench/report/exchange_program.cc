#include "bench/report/exchange_program.h"

#include <nlohmann/json.hpp>

#include "bench/report/process.h"

namespace dtrain::bench {

Exchanged RunExchange(const Settings& settings, const std::string& program,
                      const std::vector<std::string>& flags) {
  std::vector<std::string> command = {settings.Program(program)};
  command.insert(command.end(), flags.begin(), flags.end());
  const auto result = nlohmann::json::parse(OutputOf(command, settings.scratch + "/exchange"));
  return {result.at("exchanges_per_s"), result.at("bytes_per_exchange")};
}

}  // namespace dtrain::bench
