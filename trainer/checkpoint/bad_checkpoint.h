// BadCheckpoint: a checkpoint that is damaged, incomplete, or none.
#pragma once

#include <string>

#include "base/error.h"

namespace dtrain {

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

}  // namespace dtrain
