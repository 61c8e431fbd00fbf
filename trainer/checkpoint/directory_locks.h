// Locks under checkpoint.dir: the claim of a run to the whole directory, and the lock of a writer on what it
// writes. Both are flock()s, which the system lets go of when a process ends.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

// WriterLock: held for as long as its owner writes the temporary directory PATH: flock() on the file
// PATH.lock, made before the directory and removed after it. The system lets go of it when a process ends,
// however that was and on whichever machine, so that what a dead writer left can be told from what a living
// one writes. Where a file system has no locks nothing is taken for dead.
class WriterLock {
 public:
  WriterLock() = default;
  ~WriterLock() { Release(); }
  WriterLock(WriterLock&& other) noexcept;
  WriterLock& operator=(WriterLock&& other) noexcept;

  // Makes PATH.lock and takes it. False where somebody else has it. Throws SaveError where it cannot be made.
  bool Take(const std::string& path);
  // Removes PATH.lock.
  void Release();

  static bool IsLock(const std::string& path);
  static std::string PathOf(const std::string& path) { return path + kSuffix; }
  // Removes the directory PATH, and PATH.lock, where the writer of both is dead.
  static void RemoveIfDead(const std::string& path);

 private:
  static constexpr char kSuffix[] = ".lock";
  int fd_ = -1;
  std::string path_;  // of the lock
};

// DirectoryClaim: one run writes to one checkpoint.dir. Held for as long as its owner lives: flock() on the
// file .in-use there, which says who it is, of which run, and a random number. The system lets go of the lock
// when a process ends, however that was. Where a lock does not hold (a file system without locks, a host that
// was frozen for long, a file that somebody removed) another process may get the claim; what the file says
// then shows it to the one before.
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
