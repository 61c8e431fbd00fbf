#include "cmd/testing/leftovers.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace dtrain::testing {
namespace {

// Empty for a process that is gone, or not ours to look at.
std::string EnvironmentOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

bool Carries(pid_t pid, const std::string& mark) {
  return EnvironmentOf(pid).find(mark + '\0') != std::string::npos;
}

std::optional<pid_t> FindCarrier(const std::string& mark) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size() && Carries(pid, mark)) return pid;
  }
  return std::nullopt;
}

}  // namespace

std::string NewMark() {
  static std::atomic<int64_t> count{0};
  return fmt::format("DTRAIN_TEST_PROCESS={}-{}", getpid(), ++count);
}

bool NoneCarries(const std::string& mark, milliseconds patience) {
  const TimePoint deadline = Clock::now() + patience;
  while (const std::optional<pid_t> pid = FindCarrier(mark)) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    // By number: this glibc's header does not suit C++.
    pollfd ended{static_cast<int>(syscall(SYS_pidfd_open, *pid, 0)), POLLIN, 0};
    if (ended.fd < 0) continue;
    poll(&ended, 1, static_cast<int>(left));
    close(ended.fd);
  }
  return true;
}

void KillCarriers(const std::string& mark) {
  while (const std::optional<pid_t> pid = FindCarrier(mark)) {
    pollfd ended{static_cast<int>(syscall(SYS_pidfd_open, *pid, 0)), POLLIN, 0};
    if (ended.fd < 0) continue;
    syscall(SYS_pidfd_send_signal, ended.fd, SIGKILL, nullptr, 0);
    poll(&ended, 1, 1000);
    close(ended.fd);
  }
}

bool IsListening(const std::string& address) {
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  const std::string local = fmt::format("0100007F:{:04X}", port);
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream columns(line);
    std::string number, at, peer, state;
    constexpr const char* kListens = "0A";
    if (columns >> number >> at >> peer >> state && at == local && state == kListens) return true;
  }
  return false;
}

std::string UnfinishedFiles(const std::string& directory) {
  std::string found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.front() == '.' || name.find(".tmp") != std::string::npos) found += entry.path().string() + "\n";
  }
  return found;
}

}  // namespace dtrain::testing
