// What runs programs to measure them: processes, ports and a directory for them, and the machine in one line.
// Thread: one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace dtrain::bench {

// Process: a program that is measured. Owner: the case.
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

// A port of 127.0.0.1 that was free a moment ago, for a task that is started with a fixed address. Throws
// std::runtime_error where there is none.
int FreePort();

// Scratch: a directory of its own for each report, gone when that is. Owner: the program.
class Scratch {
 public:
  Scratch() : path_(std::filesystem::temp_directory_path() / "dtrain-bench-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error(path_ + " cannot be made");
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The machine in one line: "2 cores of AMD EPYC, AVX2, Linux 6.1.0, 8 GiB, load 0.10". The load is the
// caller's: it was read before anything that loads the machine was started.
std::string DescribeMachine(double load);
// The load of the last minute.
double Load();

}  // namespace dtrain::bench
