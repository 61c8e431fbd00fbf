// DirectoryClaim: one run writes to one checkpoint.dir. Held for as long as its owner lives: flock() on the
// file .in-use there, which says who it is. The system lets go of it when a process ends, however that was.
// Where a file system has no locks everybody gets it.
#pragma once

#include <string>

namespace dtrain {

class DirectoryClaim {
 public:
  DirectoryClaim() = default;
  ~DirectoryClaim();  // the file goes too
  DirectoryClaim(const DirectoryClaim&) = delete;
  DirectoryClaim& operator=(const DirectoryClaim&) = delete;

  // Takes `directory`, which is there, for `who`; does nothing where this has it already. Empty, or who else,
  // that lives, has it.
  std::string Take(const std::string& directory, const std::string& who);

 private:
  int fd_ = -1;
  std::string path_;
};

}  // namespace dtrain
