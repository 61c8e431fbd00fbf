#include "base/testing/faults.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "base/fault_point.h"

namespace dtrain::testing {
namespace {

[[noreturn]] void Refuse(const std::string& why) {
  fmt::print(stderr, "faults: {}\n", why);
  fflush(stderr);
  abort();
}

bool BeginsWith(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }

// Whether this is a directory of a checkpoint that is being written or removed.
bool IsTemporary(const std::string& name) { return name[0] == '.' && name.find(".tmp-") != name.npos; }

// Returns what the file at `path` is, judged by its name.
std::string SubjectOf(const std::string& path) {
  std::filesystem::path whole(path);
  if (!whole.has_filename()) whole = whole.parent_path();
  std::string name = whole.filename().string();
  if (IsTemporary(name)) return "temporary";
  name = name.substr(0, name.find(".tmp."));  // base/file writes to this name first
  const bool in_temporary = IsTemporary(whole.parent_path().filename().string());
  if (in_temporary && (name == "probe" || BeginsWith(name, "ps-"))) return "probe";
  if (in_temporary && name == "config.yaml") return "config";
  if (name == "manifest" || name == "best") return name;
  if (BeginsWith(name, "shard-")) return "shard";
  if (BeginsWith(name, "step-")) return "checkpoint";
  if (BeginsWith(name, "replaced-step-")) return "replaced";
  std::error_code ignored;
  return std::filesystem::is_directory(whole, ignored) ? "directory" : "file";
}

struct Order {
  std::string name, action, marker;
  int occurrence = 0;
};

bool IsName(const std::string& name) {
  static const std::vector<std::string> lists[] = {FaultNames(), LeaderFaultNames(), ReplicaFaultNames()};
  return std::any_of(std::begin(lists), std::end(lists), [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

Order ReadOrder() {
  const char* const text = getenv("DTRAIN_FAULT");
  if (text == nullptr) return {};
  Order order;
  std::string occurrence;
  std::istringstream words(text);
  std::getline(words, order.name, ':');
  std::getline(words, occurrence, ':');
  std::getline(words, order.action, ':');
  std::getline(words, order.marker);
  order.occurrence = atoi(occurrence.c_str());
  const bool known = order.action == "kill" || order.action == "stop" || order.action == "exit";
  if (!IsName(order.name) || order.occurrence < 1 || !known) {
    Refuse(fmt::format("DTRAIN_FAULT={} is not NAME:OCCURRENCE:kill|stop|exit[:MARKER]", text));
  }
  return order;
}

void Trace(const std::string& name) {
  const char* const path = getenv("DTRAIN_FAULT_TRACE");
  if (path == nullptr) return;
  const std::string line = name + "\n";
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, line.data(), line.size()) < 0) Refuse(fmt::format("{} cannot be written", path));
  close(fd);
}

// Whether this process has the arguments of DTRAIN_FAULT_ONLY.
bool IsMeant() {
  const char* const words = getenv("DTRAIN_FAULT_ONLY");
  if (words == nullptr) return true;
  std::ifstream file("/proc/self/cmdline");
  std::string own{std::istreambuf_iterator<char>(file), {}};
  std::replace(own.begin(), own.end(), '\0', ' ');
  return own.find(fmt::format(" {} ", words)) != own.npos;
}

bool IsFirst(const std::string& marker) {
  if (marker.empty()) return true;
  const int fd = open(marker.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

void Act(const std::string& action) {
  if (action == "exit") _exit(1);
  raise(action == "kill" ? SIGKILL : SIGSTOP);  // to this thread: another would let it go on for a moment
}

class Faults {
 public:
  void Reach(const std::string& name) {
    if (!IsName(name)) Refuse(fmt::format("{} is not in the list of base/testing/faults.h", name));
    if (!is_meant_) return;
    Trace(name);
    if (name == order_.name && Count() == order_.occurrence && IsFirst(order_.marker)) Act(order_.action);
  }

 private:
  int Count() {
    std::lock_guard<std::mutex> hold(mutex_);
    return ++reached_;
  }

  const Order order_ = ReadOrder();
  const bool is_meant_ = IsMeant();
  std::mutex mutex_;
  int reached_ = 0;  // how often the point of order_ was reached
};

}  // namespace

}  // namespace dtrain::testing

namespace dtrain {

void FaultPoint(const char* what, const char* path, const char* moment) {
  static testing::Faults faults;
  const std::string scope = path == nullptr ? what : testing::SubjectOf(path) + "." + what;
  faults.Reach(scope + "." + moment);
}

}  // namespace dtrain
