#include "cmd/testing/job.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "cmd/testing/leftovers.h"

namespace dtrain::testing {

ReservedPort::ReservedPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  DT_CHECK(bind(fd_, generic, size) == 0 && getsockname(fd_, generic, &size) == 0, errno);
  address_ = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
}

void ReservedPort::Listen() const { DT_CHECK(listen(fd_, SOMAXCONN) == 0, errno); }

ReservedPort::~ReservedPort() { close(fd_); }

PortBlock::PortBlock(const std::vector<std::string>& hosts, int count, int first, int step, int tries) {
  const int start = static_cast<int>(getpid()) % tries;  // two tests at once begin at other ones
  for (int i = 0; i < tries; ++i) {
    first_ = first + (start + i) % tries * step;
    if (Take(hosts, count)) return;
    Free();
  }
  DT_CHECK(false, first, step, tries);
}

PortBlock::~PortBlock() { Free(); }

bool PortBlock::Take(const std::vector<std::string>& hosts, int count) {
  for (const std::string& host : hosts) {
    for (int port = first_; port < first_ + count; ++port) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockets_.push_back(fd);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(port));
      DT_CHECK(inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1, host);
      if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
      // Only now: a port that another one keeps like this is not got, and a listener at ours may bind it
      // too.
      const int on = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
  }
  return true;
}

void PortBlock::Free() {
  for (const int fd : sockets_) close(fd);
  sockets_.clear();
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  DT_CHECK(file.good(), path);
}

Json ReadResult(const std::string& path) {
  const Json document = Json::Parse(FileContent(path));
  return document.is_object() ? document : Json();
}

std::string A9a() {
  const char* shared = std::getenv("DTRAIN_SHARED_DATA");
  const std::string folder = shared == nullptr ? "" : std::string(shared) + "/a9a";
  if (!folder.empty() && std::filesystem::is_directory(folder)) return folder;
  Skip("a9a is not there; scripts/test.sh looks in ../shared/data/a9a");
  return std::string();
}

Json RunLocal(const std::string& config, const std::vector<std::string>& more) {
  const std::string result = NewDirectory() + "/result.json";
  std::vector<std::string> arguments = {"local", "--config", config, "--result", result};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Process local(arguments);
  if (RunToEnd(local) == 0) return ReadResult(result);
  fmt::print("{}", local.standard_error());
  return Json();
}

std::string NewKeys(const std::string& config, const std::vector<std::string>& more) {
  const std::string keys = NewDirectory() + "/keys";
  std::vector<std::string> arguments = {"keygen", "--config", config, "--out", keys};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Done made = Run(arguments);
  CAPTURE(made.error);
  REQUIRE(made.code == 0);
  return keys;
}

std::string StealKey(const std::string& keys, const std::string& thief, const std::string& owner) {
  const std::string stolen = NewDirectory() + "/keys";
  std::filesystem::copy(keys, stolen);
  std::filesystem::copy_file(keys + "/" + owner + ".key", stolen + "/" + thief + ".key",
                             std::filesystem::copy_options::overwrite_existing);
  std::string text;
  std::istringstream lines(FileContent(keys + "/cluster.keys"));
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.rfind(' ');
    std::string name = line.substr(0, end);
    std::replace(name.begin(), name.end(), ' ', '-');
    std::string other = name == thief ? owner : name == owner ? thief : "";
    std::replace(other.begin(), other.end(), '-', ' ');
    text += (other.empty() ? line : other + line.substr(end)) + "\n";
  }
  WriteFile(stolen + "/cluster.keys", text);
  return stolen;
}

std::string LinearJob(int64_t steps) {
  return fmt::format(
      "model: {{kind: linear, inputs: 2}}\n"
      "data: {{train: {{format: synthetic, name: linear}}}}\n"
      "train: {{batch_size: 8, steps: {}}}\n",
      steps);
}

std::string EndlessJob() { return LinearJob(1000000000000) + "hooks: {log_every_steps: 100}\n"; }

std::string LongJob(const std::string& train) {
  return fmt::format(
      "model: {{kind: linear, inputs: 2}}\n"
      "data: {{train: {{format: synthetic, name: linear}}}}\n"
      "train: {{batch_size: 20000, {}}}\n"
      "hooks: {{log_every_steps: 10}}\n",
      train);
}

std::string DigitsJob(const std::string& model, int64_t rows, int64_t test_rows, const std::string& train) {
  return fmt::format(
      "model: {{{}}}\n"
      "data: {{train: {{format: synthetic, name: digits, rows: {}}},\n"
      "       test: {{format: synthetic, name: digits, rows: {}}}}}\n"
      "train: {{{}}}\n",
      model, rows, test_rows, train);
}

void CheckSurvivor(Process& survivor, const std::string& lost, const std::string& result) {
  CAPTURE(lost);
  REQUIRE(survivor.WaitForEnd(kDetect + std::chrono::seconds(5)));
  CheckEnd(survivor, 4);
  CHECK(Contains(survivor.standard_error(), lost));
  CHECK(ReadResult(result).at("status") == "peer_lost");
}

Cluster::Cluster(int ps, int workers, const std::string& job)
    : directory_(NewDirectory()), workers_(workers) {
  for (int i = 0; i < ps; ++i) ps_.push_back(std::make_unique<ReservedPort>());
  config_ = WriteConfig("job.yaml", job);
}

Cluster::~Cluster() {
  for (const auto& port : ps_) CHECK_FALSE(IsListening(port->address()));
  CHECK(UnfinishedFiles(directory_) == "");
}

std::string Cluster::WriteConfig(const std::string& name, const std::string& job) const {
  std::vector<std::string> ps, workers;
  for (const auto& port : ps_) ps.push_back(port->address());
  for (int i = 0; i < workers_; ++i) workers.push_back(address("worker", i));
  const std::string path = directory_ + "/" + name;
  WriteFile(path, fmt::format("cluster:\n  ps: [\"{}\"]\n  worker: [\"{}\"]\n{}", fmt::join(ps, "\", \""),
                              fmt::join(workers, "\", \""), job));
  return path;
}

std::unique_ptr<Process> Cluster::Start(const std::string& role, int index,
                                        const std::vector<std::string>& more) const {
  return StartWith(config_, role, index, more);
}

std::unique_ptr<Process> Cluster::StartWith(const std::string& config, const std::string& role, int index,
                                            const std::vector<std::string>& more) const {
  std::vector<std::string> arguments = {"--config", config, "--role", role, "--index", std::to_string(index)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return std::make_unique<Process>(arguments);
}

std::string Cluster::address(const std::string& role, int index) const {
  if (role == "ps") return ps_.at(static_cast<size_t>(index))->address();
  return fmt::format("localhost:{}", 1 + index);  // a name: no worker listens
}

LocalJob::~LocalJob() { CHECK(UnfinishedFiles(directory) == ""); }

std::unique_ptr<Process> LocalJob::Start(const std::vector<std::string>& more) const {
  std::vector<std::string> arguments = {"local", "--config", config, "--result", result};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return std::make_unique<Process>(arguments);
}

pid_t ChildOf(const Process& parent, const std::string& role, int index) {
  const std::string task = fmt::format("--role {} --index {} ", role, index);
  for (const pid_t pid : parent.Children()) {
    if (CommandLine(pid).find(task) != std::string::npos) return pid;
  }
  return -1;
}

}  // namespace dtrain::testing
