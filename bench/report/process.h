// Programs that are measured: started, waited for, read. Thread: one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::bench {

class Process {
 public:
  // Standard output and standard error go to `path`.out and `path`.err. Throws std::runtime_error where the
  // program cannot be started.
  Process(const std::vector<std::string>& command, const std::string& path);
  ~Process();  // kills and reaps what still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Waits for its end. Returns the most memory that it ever had resident, in bytes, as the kernel counts it
  // at the end. Throws std::runtime_error with its last words where it failed.
  int64_t Wait();

 private:
  const std::string path_;
  const std::string name_;
  pid_t pid_ = -1;
};

// Runs `command` to its end and returns its standard output; throws as Process does.
std::string OutputOf(const std::vector<std::string>& command, const std::string& path);

// The contents of a file. Throws std::runtime_error where it cannot be read.
std::string ReadFile(const std::string& path);

}  // namespace dtrain::bench
