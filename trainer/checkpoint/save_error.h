// SaveError: what cannot be written where checkpoints go: a full disk, a directory of somebody else.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/error.h"

namespace dtrain {

class SaveError : public IoError {
 public:
  // `what`: "written", "made". `error`: of errno. The remedy is that of a run.
  SaveError(const std::string& path, const char* what, int error)
      : SaveError(fmt::format("{}: cannot be {}: {}", path, what, ErrnoText(error))) {}
  // Without the remedy, for those who have another.
  const std::string& problem() const { return problem_; }

 private:
  explicit SaveError(const std::string& problem)
      : IoError("{}. Free some space, or name another directory: checkpoint.dir.", problem),
        problem_(problem) {}

  std::string problem_;
};

}  // namespace dtrain
