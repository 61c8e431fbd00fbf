#include "bench/stream.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "net/key_files.h"
#include "trainer/task/run_task.h"

namespace dtrain::bench {

Config StreamConfig(int64_t parameters, const std::string& address, int64_t workers) {
  Config config;
  config.cluster.ps = {address};
  for (int64_t i = 1; i <= workers; ++i) {
    config.cluster.worker.push_back(fmt::format("localhost:{}", i));  // a name: its port is not opened
  }
  config.model.kind = ModelKind::kLinear;
  config.model.inputs = parameters - 1;
  config.model.outputs = 1;
  config.data.train.format = DataFormat::kSynthetic;
  config.data.train.name = SyntheticName::kLinear;
  config.placement.log = false;
  config.log.level = static_cast<int>(LogLevel::kWarning);
  return config;
}

std::unique_ptr<Logger> WarningsOf(TaskId task) {
  LogOptions options;
  options.level = LogLevel::kWarning;
  return std::make_unique<Logger>(TaskName(task), options);
}

std::unique_ptr<net::Transport> StreamTransport(const Config& config, TaskId task, const RunKeys* keys) {
  if (keys == nullptr) return NewNetworkTransport(config);
  const KeyDescriptor own(keys->TextFor(task));
  return NewNetworkTransport(config, net::ReadKeyRing(dup(own.fd()), TaskName(task)));
}

void RunStreamPs(const Config& config, net::Transport& transport, int listening_fd) {
  const TaskId self{Role::kPs, 0};
  const std::unique_ptr<Logger> log = WarningsOf(self);
  TaskOptions options;
  options.listening_fd = listening_fd;
  options.tells_end = false;
  RunTask(config, self, transport, *log, options);
}

pid_t StartStreamPs(const Config& config, int listening_fd, const RunKeys* keys) {
  const pid_t ps = fork();
  if (ps == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    RunStreamPs(config, *StreamTransport(config, {Role::kPs, 0}, keys), listening_fd);
    std::_Exit(0);
  }
  close(listening_fd);
  return ps;
}

StreamWorker::StreamWorker(const Config& config, int index, net::Transport& transport, Logger& log)
    : layout_(MakeLayout(config, 1)),
      channel_(transport.NewChannel()),
      client_(config, {Role::kWorker, index}, layout_, *channel_, transport, activity_, log),
      gradient_(static_cast<size_t>(layout_.size) * sizeof(float)),
      parameters_(static_cast<size_t>(layout_.size)) {
  client_.exchanges().set_parameters(parameters_.data());
}

void StreamWorker::Begin() {
  client_.Join();
  const wire::Start* start =
      client_.Call(0, true, "ready", [](auto& builder) { return wire::CreateReady(builder); })
          .body_as_Start();
  if (start == nullptr) throw Failure(ExitCode::kInternal, "ps 0 answered Ready with something else");
  client_.exchanges().AddSteps(start->steps());
  client_.peers().Started();
}

void StreamWorker::Exchange() {
  activity_.Turn();
  client_.exchanges().Push(gradient_, 1);
  client_.Collect();
}

void StreamWorker::End() {
  client_.Call(0, false, "done", [](auto& builder) { return wire::CreateDone(builder); });
  client_.Call(0, true, "the end", [](auto& builder) { return wire::CreateWaitEnd(builder); });
  client_.peers().SayBye();
}

}  // namespace dtrain::bench
