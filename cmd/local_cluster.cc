#include "cmd/local_cluster.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"

namespace dtrain {
namespace {

// cluster.ps=["127.0.0.1:40001"]
std::string SetAddresses(const std::string& key, const std::vector<std::string>& addresses) {
  return fmt::format("{}=[\"{}\"]", key, fmt::join(addresses, "\", \""));
}

ChildCommand OneCommand(const std::vector<std::string>& common, const char* role, size_t index) {
  ChildCommand command;
  command.name = fmt::format("{} {}", role, index);
  command.arguments = common;
  for (const std::string& more :
       {std::string("--role"), std::string(role), std::string("--index"), std::to_string(index)}) {
    command.arguments.push_back(more);
  }
  return command;
}

void Inherit(ChildCommand* command, const char* option, int fd) {
  command->arguments.push_back(option);
  command->arguments.push_back(std::to_string(fd));
  command->inherited.push_back(fd);
}

}  // namespace

int PsCount(const ClusterConfig& cluster) {
  return cluster.ps.empty() ? kDefaultPs : static_cast<int>(cluster.ps.size());
}

int WorkerCount(const ClusterConfig& cluster) {
  return cluster.worker.empty() ? kDefaultWorkers : static_cast<int>(cluster.worker.size());
}

ListeningSocket::ListeningSocket() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd_ < 0 || bind(fd_, generic, size) != 0 || listen(fd_, SOMAXCONN) != 0 ||
      getsockname(fd_, generic, &size) != 0) {
    const int failed = errno;
    if (fd_ >= 0) close(fd_);
    throw IoError("127.0.0.1: no free port: {}. Are there too many sockets?", ErrnoText(failed));
  }
  address_ = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
}

ListeningSocket::~ListeningSocket() {
  if (fd_ >= 0) close(fd_);
}

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), address_(std::move(other.address_)) {}

std::vector<ChildCommand> LocalCommands(const ConfigArguments& config, const Config& spec,
                                        const std::vector<ListeningSocket>& ps, const ListeningSocket* feed,
                                        int result_fd, bool live) {
  const int workers = static_cast<int>(spec.cluster.worker.size());
  std::vector<std::string> names = LocalNames(workers);
  if (feed != nullptr) names[0] = feed->address();
  std::vector<std::string> addresses;
  for (const ListeningSocket& socket : ps) addresses.push_back(socket.address());
  std::vector<std::string> sets = config.sets;
  sets.push_back(SetAddresses("cluster.ps", addresses));
  sets.push_back(SetAddresses("cluster.worker", names));
  sets.push_back("net.bind=null");
  std::vector<std::string> common = {"--config", config.path};
  for (const std::string& set : sets) {
    common.push_back("--set");
    common.push_back(set);
  }
  std::vector<ChildCommand> commands;
  for (size_t i = 0; i < ps.size(); ++i) {
    commands.push_back(OneCommand(common, "ps", i));
    Inherit(&commands.back(), "--listen-fd", ps[i].fd());
  }
  for (int i = 0; i < workers; ++i) {
    commands.push_back(OneCommand(common, "worker", static_cast<size_t>(i)));
    commands.back().expendable = i > 0 && spec.failure.worker_lost == WorkerLost::kContinue;
    if (i == 0 && feed != nullptr) Inherit(&commands.back(), "--listen-fd", feed->fd());
    if (i == 0 && result_fd >= 0) Inherit(&commands.back(), "--result-fd", result_fd);
    if (i == 0 && live) commands.back().arguments.push_back("--relay-live");
  }
  return commands;
}

std::vector<std::string> LocalNames(int count) {
  return std::vector<std::string>(static_cast<size_t>(count), "127.0.0.1:0");
}

void NameForThreads(ClusterConfig* cluster) {
  int port = 0;
  for (std::string& name : cluster->ps) name = fmt::format("127.0.0.1:{}", ++port);
  for (std::string& name : cluster->worker) name = fmt::format("127.0.0.1:{}", ++port);
}

}  // namespace dtrain
