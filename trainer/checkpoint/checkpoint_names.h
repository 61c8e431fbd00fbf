// The names in checkpoint.dir: step-000012000; replaced-step-000012000-7, which was moved aside when that
// step was saved again; and .step-000012000.tmp-1f2e3d4c5b6a7988, which is not yet complete or being removed.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

std::string CheckpointName(int64_t step);
// The name of checkpoint `sequence` after it has made room for another one named `name`.
std::string ReplacedName(const std::string& name, int64_t sequence);
bool IsCheckpointName(const std::string& name);
// Whether a checkpoint name is that of one moved aside, for another one of its step or for another run.
bool IsReplacedName(const std::string& name);

std::string TemporaryName(const std::string& name, const std::string& token);
std::string RandomToken();
bool IsTemporaryName(const std::string& name);

}  // namespace dtrain
