// The names in checkpoint.dir: step-000012000, replaced-step-000012000-7 where that step was saved again, and
// .step-000012000.tmp-1f2e3d4c5b6a7988 of what is not complete yet, or not any more.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

std::string CheckpointName(int64_t step);
// Of the checkpoint `sequence` that makes room for another one of the name `name`.
std::string ReplacedName(const std::string& name, int64_t sequence);
bool IsCheckpointName(const std::string& name);
// Of those: whether it has made room, for another of its step or for another run.
bool IsReplacedName(const std::string& name);

std::string TemporaryName(const std::string& name, const std::string& token);
// Another one at each call.
std::string RandomToken();
bool IsTemporaryName(const std::string& name);

}  // namespace dtrain
