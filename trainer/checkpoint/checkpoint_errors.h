// The errors of reading and writing checkpoints.
#pragma once

#include <errno.h>
#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "base/file.h"

namespace dtrain {

// BadCheckpoint: the checkpoint is damaged or incomplete, or the path is no checkpoint.
class BadCheckpoint : public UserError {
 public:
  // `problem`: the file and place, what is there, and what should be.
  BadCheckpoint(const std::string& path, const std::string& problem)
      : UserError("{}: {}. dtrain inspect on its directory shows which are complete: name one of those.",
                  path, problem),
        problem_(problem) {}
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

// The error of a run that would start anew in a directory of damaged checkpoints only, and gradually replace
// them with its own. The damage was logged line by line.
inline UserError NoneComplete(const std::string& directory, const char* key = "checkpoint.dir") {
  return UserError(
      "{} = {}: none of its checkpoints is complete (see above). Fetch one back, or begin anew "
      "with checkpoint.resume: never.",
      key, directory);
}

// The error of a run that was to begin with a checkpoint of a directory that has none.
inline UserError NothingToBeginWith(const std::string& start_from) {
  return UserError(
      "checkpoint.start_from = {}: there is no complete checkpoint. Name checkpoint.dir of a run, or one of "
      "the checkpoints in it.",
      start_from);
}

// Whether free space helps against `error`, an errno.
inline bool IsLackOfRoom(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

// SaveError: something cannot be written for a checkpoint, as on a full disk or in another user's directory.
class SaveError : public FileError {
 public:
  // `what`: "written", "made". `error`: an errno. The remedy is for a run.
  SaveError(const std::string& path, const char* what, int error)
      : SaveError(fmt::format("{}: cannot be {}: {}", path, what, ErrnoText(error)), error) {}
  // The text without the remedy, for callers with another one.
  const std::string& problem() const { return problem_; }

 private:
  SaveError(const std::string& problem, int error)
      : FileError(fmt::format("{}. {}ame another directory: checkpoint.dir.", problem,
                              IsLackOfRoom(error) ? "Free some space, or n" : "N"),
                  error),
        problem_(problem) {}

  std::string problem_;
};

}  // namespace dtrain
