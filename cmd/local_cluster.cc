#include "cmd/local_cluster.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"
#include "cmd/cluster_size.h"
#include "cmd/load_config.h"
#include "cmd/run_end.h"
#include "cmd/task_child.h"

namespace dtrain {
namespace {

ChildCommand OneCommand(const Config& spec, TaskId task, const std::vector<std::string>& common) {
  ChildCommand command = ChildFor(spec, task);
  command.arguments = common;
  const std::vector<std::string> own = TaskWords(task);
  command.arguments.insert(command.arguments.end(), own.begin(), own.end());
  return command;
}

// What every child is told: the file, the flags, and the addresses of this cluster.
std::vector<std::string> CommonArguments(const ConfigArguments& config, const Config& spec,
                                         const SharedWithChildren& shared) {
  std::vector<std::string> names = LocalNames(static_cast<int>(spec.cluster.worker.size()));
  if (shared.feed) names[0] = shared.feed->address();
  std::vector<std::string> addresses;
  for (const ListeningSocket& socket : shared.ps) addresses.push_back(socket.address());
  std::vector<std::string> sets = config.sets;
  sets.push_back(SetAddresses("cluster.ps", addresses));
  sets.push_back(SetAddresses("cluster.worker", names));
  sets.push_back("net.bind=null");
  std::vector<std::string> common = {"--config", config.path};
  for (const std::string& set : sets) {
    common.push_back("--set");
    common.push_back(set);
  }
  return common;
}

}  // namespace

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
                                        const SharedWithChildren& shared, bool live) {
  const std::vector<std::string> common = CommonArguments(config, spec, shared);
  std::vector<ChildCommand> commands;
  for (const TaskId task : TasksOf(spec.cluster)) {
    commands.push_back(OneCommand(spec, task, common));
    const auto index = static_cast<size_t>(task.index);
    const bool first = index == 0;
    if (task.role == Role::kPs) {
      Inherit(&commands.back(), "--listen-fd", shared.ps[index].fd());
      if (first) Inherit(&commands.back(), "--result-fd", shared.results->ps_fd());
    } else {
      Inherit(&commands.back(), "--result-fd", shared.results->worker_fd(index));
      if (first && shared.feed) Inherit(&commands.back(), "--listen-fd", shared.feed->fd());
      if (first && live) commands.back().arguments.push_back("--relay-live");
    }
  }
  for (ChildCommand& command : commands) {
    Inherit(&command, "--lost-fd", shared.lost_fd);
    if (ParentTellsEnd(spec.log)) command.arguments.push_back("--end-told");
  }
  return commands;
}

void NameForThreads(ClusterConfig* cluster) {
  int port = 0;
  for (std::string& name : cluster->ps) name = fmt::format("127.0.0.1:{}", ++port);
  for (std::string& name : cluster->worker) name = fmt::format("127.0.0.1:{}", ++port);
}

}  // namespace dtrain
