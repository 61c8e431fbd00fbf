// What a command line may name: one checkpoint, or a directory of them.
#pragma once

#include <functional>
#include <string>

#include "cmd/error_lines.h"

namespace dtrain {

// Without slashes at its end.
std::string WithoutSlashes(std::string path);
// Otherwise `path`, without slashes at its end, is a directory of checkpoints.
bool IsOneCheckpoint(const std::string& path);
[[noreturn]] void RefuseAsCheckpoint(const std::string& path);

// The path of the checkpoint, where one was named; otherwise that of the newest of which every byte is as it
// was written, with a warning for each that was passed over. Throws UserError where there is none.
std::string FindCheckpoint(const std::string& path, const ErrorLines& errors);

// Calls `open` with what FindCheckpoint() finds; of a directory again, with the newest of then, where a run
// has removed it before `open` was done.
void OpenCheckpoint(const std::string& path, const ErrorLines& errors,
                    const std::function<void(const std::string&)>& open);

}  // namespace dtrain
