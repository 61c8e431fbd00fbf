// DirectoryClaim: one run writes to one checkpoint.dir. Held for as long as its owner lives: flock() on the
// file .in-use there, which says who it is, of which run, and a random number. The system lets go of the lock
// when a process ends, however that was. Where a lock does not hold (a file system without locks, a host that
// was frozen for long, a file that somebody removed) another process may get the claim; what the file says
// then shows it to the one before.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

class DirectoryClaim {
 public:
  DirectoryClaim() = default;
  ~DirectoryClaim();  // the file goes too
  DirectoryClaim(const DirectoryClaim&) = delete;
  DirectoryClaim& operator=(const DirectoryClaim&) = delete;

  // Takes `directory`, which is there, for `who` in the run `run_id`; does nothing where this has it already.
  // Empty, or who else, that lives, has it.
  std::string Take(const std::string& directory, const std::string& who, uint64_t run_id);
  // Who has taken it since; empty: nobody, or it was never taken.
  std::string TakenBy() const;

 private:
  int fd_ = -1;
  std::string path_;
  std::string content_;
};

}  // namespace dtrain
