// What a command line may name: one checkpoint, or a directory of them.
#pragma once

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

}  // namespace dtrain
