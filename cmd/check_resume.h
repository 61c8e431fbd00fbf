// Where a run would begin, in dtrain check: the checkpoint that checkpoint.resume names, or finds.
#pragma once

#include <string>

#include "cmd/error_lines.h"
#include "trainer/config/config.h"
#include "trainer/data/input_form.h"
#include "trainer/model/layout.h"

namespace dtrain {

// Reads all of it, verifies every byte, and compares it with the model and the run's data (`form`). What is
// wrong is a UserError, in the run's words, where ps 0 is on this machine; else a
// warning, since it may be good where they are. Returns a line for the user, which begins with "start: ";
// empty where only other machines know, or no checkpoint is asked for.
std::string CheckResume(const Config& config, const Layout& layout, const InputForm& form,
                        const ErrorLines& errors);

}  // namespace dtrain
