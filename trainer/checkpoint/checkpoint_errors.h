// Errors of checkpoints: those that cannot be read, and those that cannot be written.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/error.h"

namespace dtrain {

// BadCheckpoint: a checkpoint that is damaged, incomplete, or none.
class BadCheckpoint : public UserError {
 public:
  // `problem`: which file, where, what it says and what it should.
  BadCheckpoint(const std::string& path, const std::string& problem)
      : UserError("{}: {}. dtrain inspect on its directory shows which are complete: name one of those.",
                  path, problem),
        problem_(problem) {}
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

// Of a run that would begin anew in a directory whose checkpoints are all damaged, which was told line by
// line, and push them out one by one with its own.
inline UserError NoneComplete(const std::string& directory) {
  return UserError(
      "checkpoint.dir = {}: none of its checkpoints is complete (see above). Fetch one back, or begin anew "
      "with "
      "checkpoint.resume: never.",
      directory);
}

// SaveError: what cannot be written where checkpoints go: a full disk, a directory of somebody else.
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
