// What a run of children came to, once all have ended: the last lines on standard error, --result and the
// exit code of `dtrain local`. How single ends are judged is in post_mortem.h.
#pragma once

#include "base/log.h"
#include "cmd/error_lines.h"
#include "cmd/post_mortem.h"
#include "cmd/result_file.h"
#include "cmd/run_results.h"
#include "trainer/config/config.h"

namespace dtrain {

// `results`: what the children have left, which becomes this command's result. Returns the exit code; says on
// standard error what a run that is done has come to (in `log`) and went through, or why the code is not 0.
// Throws IoError.
int Conclude(const Config& config, const Outcome& outcome, const RunResults& results, Logger& log,
             const ErrorLines& errors, ResultFile& result);

}  // namespace dtrain
