#include "cmd/grammar/scheduler_options.h"

#include "base/error.h"
#include "cmd/grammar/options.h"
#include "trainer/config/suggest.h"

namespace dtrain {
namespace {

constexpr int kLastPort = 65535;

Scheduler ParseScheduler(const std::string& text) {
  std::vector<std::string> names;
  for (const Scheduler scheduler : {Scheduler::kSlurm, Scheduler::kTfConfig, Scheduler::kMpi}) {
    if (text == SchedulerName(scheduler)) return scheduler;
    names.push_back(SchedulerName(scheduler));
  }
  const std::string close = ClosestName(text, names);
  throw UserError("--from {}: must be {}.{}", text, ListText(names, "or"),
                  close.empty() ? "" : fmt::format(" Did you mean {}?", close));
}

}  // namespace

void AddSchedulerOptions(CLI::App* app, SchedulerTexts* texts, const char* ps) {
  app->add_option("--from", texts->from,
                  "Who says which task of which cluster this is: slurm, tf_config or mpi")
      ->type_name("slurm|tf_config|mpi");
  app->add_option("--ps", texts->ps, ps)->type_name("N");
  app->add_option("--base-port", texts->base_port,
                  "With --from slurm or mpi: the port of the first process of each host; 9000")
      ->type_name("PORT");
}

std::optional<SchedulerArguments> UnderstandScheduler(const SchedulerTexts& texts) {
  if (texts.from.empty()) {
    for (const auto& [option, text] :
         {std::pair("--ps", texts.ps), std::pair("--base-port", texts.base_port)}) {
      if (text.empty()) continue;
      throw UserError("{} {}: goes with --from slurm and --from mpi. Add one of them, or leave it out.",
                      option, text);
    }
    return std::nullopt;
  }
  SchedulerArguments from;
  from.scheduler = ParseScheduler(texts.from);
  if (from.scheduler == Scheduler::kTfConfig && !(texts.ps + texts.base_port).empty()) {
    throw UserError(
        "{}: has no effect with --from tf_config, where TF_CONFIG has all addresses. Leave it out.",
        texts.ps.empty() ? "--base-port" : "--ps");
  }
  if (!texts.ps.empty()) from.options.ps = ParseNumber("--ps", texts.ps, 1, "1");
  if (!texts.base_port.empty()) {
    from.options.base_port = ParseNumber("--base-port", texts.base_port, 1, "9000");
    if (*from.options.base_port > kLastPort) {
      throw UserError("--base-port {}: must be at most {}. Try --base-port {}.", texts.base_port, kLastPort,
                      kDefaultBasePort);
    }
  }
  return from;
}

}  // namespace dtrain
