#include "trainer/monitor/run_monitor.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "net/address.h"
#include "net/channel.h"
#include "net/tcp.h"
#include "trainer/config/config.h"
#include "trainer/monitor/metrics_port.h"
#include "trainer/monitor/run_metrics.h"

namespace dtrain {
namespace {

constexpr size_t kMaxPassword = 1024;
constexpr char kOther[] =
    "a device, a pipe, a link or a directory is there, and a file would take its place. Name a file";

// Whether something is there that is no file.
bool IsOther(const std::string& path) {
  struct stat about {};
  return lstat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode);
}

// Replaces a file without waiting for the disk: after a crash of the machine the older one may be there.
// Returns 0, or the errno of what failed. Never takes the place of a device, a pipe or a link.
int Replace(const std::string& path, std::string_view content, mode_t mode) {
  if (IsOther(path)) return EEXIST;
  const std::string temporary = path + ".tmp";
  unlink(temporary.c_str());
  int failed = 0;
  {
    const FileDescriptor file(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    failed = file.get() < 0 ? errno : WriteAll(file.get(), content);
  }
  if (failed == 0 && rename(temporary.c_str(), path.c_str()) != 0) failed = errno;
  if (failed != 0) unlink(temporary.c_str());
  return failed;
}

// The first line of a file that others may not read.
std::string ReadPassword(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (file.get() < 0 || fstat(file.get(), &about) != 0) {
    throw UserError("metrics.password = {}: cannot be read: {}.", path, ErrnoText(errno));
  }
  if (!S_ISREG(about.st_mode) || (about.st_mode & 077) != 0) {
    throw UserError("metrics.password = {}: others may read it; refused. Try chmod 600 {}.", path, path);
  }
  std::string text(kMaxPassword + 1, '\0');
  const ssize_t got = read(file.get(), text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  text.resize(std::min(text.find('\n'), text.size()));
  if (text.empty() || text.size() > kMaxPassword) {
    throw UserError("metrics.password = {}: must be a file with one line of 1 to {} characters.", path,
                    kMaxPassword);
  }
  return text;
}

std::string PasswordOf(const MetricsConfig& metrics) {
  return metrics.password.empty() ? "" : ReadPassword(metrics.password);
}

// Returns a socket that listens where the metrics are told.
int ListenFor(const Config& config) {
  const MetricsConfig& metrics = config.metrics;
  const bool ipv6 = metrics.bind.find(':') != std::string::npos;
  const std::string address = fmt::format(ipv6 ? "[{}]:{}" : "{}:{}", metrics.bind, *metrics.port);
  if (const net::Resolved found = net::Resolve(net::ParseAddress(address)); found.addresses.empty()) {
    throw UserError(
        "metrics.bind = {}: is no address of this machine: {}. Try 127.0.0.1, or 0.0.0.0 for all its "
        "addresses.",
        metrics.bind, found.error);
  }
  const bool reachable = !net::IsLoopback(metrics.bind);
  if (reachable && metrics.password.empty() && !config.security.insecure) {
    throw UserError(
        "metrics.bind = {}: other machines could read what the run does; refused. Set metrics.password to a "
        "file with a password, or security.insecure: true if the network is trusted.",
        metrics.bind);
  }
  try {
    return net::Listen(address);
  } catch (const UserError&) {
    throw UserError(
        "metrics.port = {}: cannot listen at {}. Another program may have this port, or metrics.bind is no "
        "address of this machine.",
        *metrics.port, address);
  }
}

int64_t FreeBytes(const std::string& directory) {
  struct statvfs disk {};
  if (directory.empty() || statvfs(directory.c_str(), &disk) != 0) return -1;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

}  // namespace

RunMonitor::RunMonitor(const Config& config, const std::string& directory, Logger& log)
    : config_(config), directory_(directory), log_(log) {
  if (!directory.empty()) {
    const std::string token = fmt::format("{:016x}{:016x}", net::NewNodeId(), net::NewNodeId());
    if (Replace(directory + "/" + kToken, token, 0600) == 0) token_ = token;
  }
  if (config.metrics.port) OpenPort();
  thread_ = std::thread([this] { Run(); });
}

void CheckMetrics(const Config& config) {
  if (!config.metrics.file.empty() && IsOther(config.metrics.file)) {
    throw UserError("metrics.file = {}: {}.", config.metrics.file, kOther);
  }
  if (!config.metrics.port) return;
  PasswordOf(config.metrics);
  close(ListenFor(config));
}

RunMonitor::~RunMonitor() {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void RunMonitor::OpenPort() {
  const std::string password = PasswordOf(config_.metrics);
  port_ = std::make_unique<MetricsPort>(ListenFor(config_), password, [this] { return MetricsOnPort(); });
  log_.Info("metrics at http://{}/metrics{}", port_->address(), password.empty() ? "" : " with a password");
}

std::string RunMonitor::address() const { return port_ == nullptr ? "" : port_->address(); }

std::string RunMonitor::MetricsOnPort() {
  std::lock_guard<std::mutex> hold(mutex_);
  return metrics_;
}

void RunMonitor::Put(std::string json) {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    next_ = std::move(json);
  }
  changed_.notify_one();
}

void RunMonitor::Run() {
  std::unique_lock<std::mutex> hold(mutex_);
  while (true) {
    changed_.wait(hold, [this] { return over_ || !next_.empty(); });
    if (next_.empty()) return;
    const std::string json = std::exchange(next_, {});
    hold.unlock();
    HandOn(json);
    hold.lock();
  }
}

// A directory that cannot be written is not a reason to end a run; a later status may get there.
void RunMonitor::HandOn(const std::string& json) {
  if (!token_.empty()) Replace(directory_ + "/" + kStatus, json + "\n", 0644);
  if (port_ == nullptr && config_.metrics.file.empty()) return;
  const std::string name = std::filesystem::path(directory_).filename().string();
  std::string text = MetricsText(Json::Parse(json), {name, FreeBytes(config_.checkpoint.dir), WallNanos()});
  if (!config_.metrics.file.empty()) {
    const int failed = Replace(config_.metrics.file, text, 0644);
    if (failed != 0 && !file_failed_) {
      log_.Warning("metrics.file = {}: cannot be written: {}. The run goes on without it.",
                   config_.metrics.file, failed == EEXIST ? kOther : ErrnoText(failed));
    }
    file_failed_ = failed != 0;
  }
  std::lock_guard<std::mutex> hold(mutex_);
  metrics_ = std::move(text);
}

}  // namespace dtrain
