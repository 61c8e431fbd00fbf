#include "cmd/checkpoint_argument.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/shard_format.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

constexpr int kMostGone = 10;  // each needs a save of the run in the moment between finding and reading

}  // namespace

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool IsOneCheckpoint(const std::string& path) {
  std::error_code ignored;
  return IsCheckpointName(fs::path(path).filename().string()) ||
         fs::exists(path + "/" + kManifestName, ignored);
}

void RefuseAsCheckpoint(const std::string& path) {
  throw UserError(
      "{}: neither a checkpoint nor a directory of checkpoints. Name checkpoint.dir of a run, or "
      "one of the checkpoints in it.",
      path);
}

std::string FindCheckpoint(const std::string& path, const ErrorLines& errors) {
  const std::string named = WithoutSlashes(path);
  std::error_code ignored;
  if (!fs::exists(named, ignored)) RefuseAsCheckpoint(named);
  if (IsOneCheckpoint(named)) return named;
  std::vector<std::string> skipped;
  const std::optional<std::string> newest = CheckpointDirectory(named).FindNewest(&skipped);
  for (const std::string& line : skipped) errors.Print(fmt::format("warning: {}/{}", named, line));
  if (newest) return *newest;
  if (skipped.empty()) RefuseAsCheckpoint(named);
  throw UserError("{}: none of its checkpoints can be read (see above). Name another directory.", named);
}

void OpenCheckpoint(const std::string& path, const ErrorLines& errors,
                    const std::function<void(const std::string&)>& open) {
  const bool one = IsOneCheckpoint(WithoutSlashes(path));
  for (int left = one ? 0 : kMostGone;; --left) {
    const std::string found = FindCheckpoint(path, errors);
    try {
      return open(found);
    } catch (const UserError&) {
      if (left == 0 || !IsGone(found)) throw;
    }
  }
}

}  // namespace dtrain
