// What a run of children came to, once all have ended: the last lines on standard error, --result and the
// exit code of `dtrain local`. How single ends are judged is in post_mortem.h.
#pragma once

#include "cmd/error_lines.h"
#include "cmd/post_mortem.h"
#include "cmd/result_file.h"
#include "trainer/config/config.h"
#include "trainer/task/run_summary.h"

namespace dtrain {

// `summary`: what worker 0 has left, which becomes this command's result. Returns the exit code; says on
// standard error why it is not 0, or what a run that is done went through. Throws IoError.
int Conclude(const Config& config, const Outcome& outcome, RunSummary summary, const ErrorLines& errors,
             ResultFile& result);

}  // namespace dtrain
