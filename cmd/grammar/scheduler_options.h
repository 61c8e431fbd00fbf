// --from, --ps and --base-port: of the form for one task, and of check.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cmd/arguments.h"

namespace dtrain {

struct SchedulerTexts {
  std::string from, ps, base_port;
};
// `ps`: what --ps says.
void AddSchedulerOptions(CLI::App* app, SchedulerTexts* texts,
                         const char* ps = "With --from slurm or mpi: so many of the first ranks are ps");

// Unset without --from. Throws UserError for an unknown one, a bad number, or one that has no effect.
std::optional<SchedulerArguments> UnderstandScheduler(const SchedulerTexts& texts);

}  // namespace dtrain
