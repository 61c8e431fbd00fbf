// Running programs to measure them: processes, ports, a scratch directory, and a description of the machine.
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
  // Writes standard output and standard error to `path`.out and `path`.err. Throws std::runtime_error if the
  // program cannot be started.
  Process(const std::vector<std::string>& command, const std::string& path);
  ~Process();  // kills and reaps a program that still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Waits for the end. Returns the peak of resident memory in bytes, as the kernel counts it. Throws
  // std::runtime_error with the last output if the program failed.
  int64_t Wait();

 private:
  const std::string path_;
  const std::string name_;
  pid_t pid_ = -1;
};

// Runs `command` to its end and returns its standard output. Throws as Process does.
std::string OutputOf(const std::vector<std::string>& command, const std::string& path);

// Returns the content of a file. Throws std::runtime_error if it cannot be read.
std::string ReadFile(const std::string& path);

// Returns a port of 127.0.0.1 that was free just now, for a task with a fixed address. Throws
// std::runtime_error if there is none.
int FreePort();

// Scratch: a directory of its own for each report, removed at the end. Owner: the program.
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

// Describes the machine in one line: "2 cores of AMD EPYC, AVX2, Linux 6.1.0, 8 GiB, load 0.10". The caller
// reads `load` before it starts any work.
std::string DescribeMachine(double load);
// Returns the load of the last minute.
double Load();

}  // namespace dtrain::bench
