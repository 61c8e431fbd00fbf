#include "bench/report/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace dtrain::bench {
namespace {

constexpr size_t kLastWords = 600;
constexpr int kMode = 0644;
constexpr int64_t kRssUnit = 1024;  // getrusage(2) counts kilobytes

// Standard output and standard error as files.
class FileActions {
 public:
  explicit FileActions(const std::string& path) {
    constexpr int kFlags = O_CREAT | O_TRUNC | O_WRONLY;
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, (path + ".out").c_str(), kFlags, kMode);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, (path + ".err").c_str(), kFlags, kMode);
  }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

Process::Process(const std::vector<std::string>& command, const std::string& path)
    : path_(path), name_(command.front()) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const FileActions actions(path);
  const int error = posix_spawn(&pid_, name_.c_str(), actions.get(), nullptr, arguments.data(), environ);
  if (error != 0) throw std::runtime_error(fmt::format("{}: {}", name_, std::strerror(error)));
}

Process::~Process() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

int64_t Process::Wait() {
  int status = 0;
  rusage usage{};
  wait4(pid_, &status, 0, &usage);
  pid_ = -1;
  if (status == 0) return usage.ru_maxrss * kRssUnit;
  std::string words = ReadFile(path_ + ".err");
  if (words.size() > kLastWords) words.erase(0, words.size() - kLastWords);
  words.erase(words.find_last_not_of('\n') + 1);
  throw std::runtime_error(fmt::format("{} ended with status {:#x}: {}", name_, status, words));
}

std::string OutputOf(const std::vector<std::string>& command, const std::string& path) {
  Process(command, path).Wait();
  return ReadFile(path + ".out");
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int FreePort() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool found = bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(descriptor);
  if (!found) throw std::runtime_error("no free port was found");
  return ntohs(address.sin_port);
}

namespace {

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(": ") + 2);
  }
  return "unknown processor";
}

const char* InstructionSet() {
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return "SSE4.2";
}

int Cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

double MemoryGib() {
  struct sysinfo about {};
  sysinfo(&about);
  return static_cast<double>(about.totalram) * about.mem_unit / (1 << 30);
}

}  // namespace

double Load() {
  double load = 0;
  getloadavg(&load, 1);
  return load;
}

std::string DescribeMachine(double load) {
  utsname kernel{};
  uname(&kernel);
  return fmt::format("{} cores of {}, {}, {} {}, {:.0f} GiB, load {:.2f}", Cores(), CpuModel(),
                     InstructionSet(), kernel.sysname, kernel.release, MemoryGib(), load);
}

}  // namespace dtrain::bench
