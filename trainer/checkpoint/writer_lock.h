// WriterLock: held for as long as its owner writes the temporary directory PATH: flock() on the file
// PATH.lock, made before the directory and removed after it. The system lets go of it when a process ends,
// however that was and on whichever machine, so that what a dead writer left can be told from what a living
// one writes. Where a file system has no locks nothing is taken for dead.
#pragma once

#include <string>

namespace dtrain {

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

}  // namespace dtrain
