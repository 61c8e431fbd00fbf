// Locks in checkpoint.dir: a run's claim to the whole directory, and a writer's lock on what it writes. Both
// are flock()s, which the system releases when a process ends.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

// WriterLock: held while its owner writes the temporary directory PATH. It is a flock() on the file
// PATH.lock, which is made before the directory and removed after it. The system releases it when a process
// ends, in any way and on any machine, so the remains of a dead writer can be told from the work of a living
// one. On a file system without locks every writer counts as living.
class WriterLock {
 public:
  WriterLock() = default;
  ~WriterLock() { Release(); }
  WriterLock(WriterLock&& other) noexcept;
  WriterLock& operator=(WriterLock&& other) noexcept;

  // Makes and locks PATH.lock. False: another process has it. Throws SaveError when it cannot be made.
  bool Take(const std::string& path);
  // Removes PATH.lock.
  void Release();
  // False: RemoveAnyhow() has removed it, and what is there now is another process's.
  bool held() const;

  static bool IsLock(const std::string& path);
  static std::string PathOf(const std::string& path) { return path + kSuffix; }
  // Removes the directory PATH and PATH.lock if their writer is dead.
  static void RemoveIfDead(const std::string& path);
  // Removes them though their writer may live: it is not to write there any more.
  static void RemoveAnyhow(const std::string& path);

 private:
  static constexpr char kSuffix[] = ".lock";
  int fd_ = -1;
  std::string path_;  // of the lock file
};

// DirectoryClaim: one run writes to one checkpoint.dir. It is held while its owner lives: a flock() on the
// file .in-use, which names the owner, its run, and a random number. The system releases the lock when a
// process ends in any way. Where locks fail (a file system without locks, a host that was frozen for long, a
// removed file) another process may get the claim; the file's contents then show this to the first.
class DirectoryClaim {
 public:
  DirectoryClaim() = default;
  // Also removes the file.
  ~DirectoryClaim();
  DirectoryClaim(const DirectoryClaim&) = delete;
  DirectoryClaim& operator=(const DirectoryClaim&) = delete;

  // Claims `directory`, which exists, for `who` in the run `run_id`; does nothing if this has it already.
  // Returns the living process that has it; empty: the claim was taken. Throws UserError if a link is in the
  // place of the file, because the file that it leads to would be overwritten.
  // `replaces`: takes it from a process of the same run too, which may live.
  std::string Take(const std::string& directory, const std::string& who, uint64_t run_id,
                   bool replaces = false);
  // The directory is gone: Take() claims the next one.
  void Forget();
  // The process that has taken the claim since; empty: none, or Take() was never called.
  std::string TakenBy() const;

 private:
  int fd_ = -1;
  std::string path_;
  std::string content_;
};

}  // namespace dtrain
