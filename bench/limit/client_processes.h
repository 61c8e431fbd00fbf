// ClientProcesses: the clients of a limit, each in a process of its own. They are forked before there is a
// ZeroMQ context, because its threads do not survive a fork, and learn the endpoint through a pipe. Owner and
// thread: the first process of the limit, which has no threads when they are made. Errors end the process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dtrain::bench {

class ClientProcesses {
 public:
  // `run`: what each of them does with the endpoint.
  ClientProcesses(int64_t count, const std::function<void(const std::string& endpoint)>& run);
  ~ClientProcesses();
  ClientProcesses(const ClientProcesses&) = delete;
  ClientProcesses& operator=(const ClientProcesses&) = delete;

  // Tells them where the server is.
  void Begin(const std::string& endpoint);
  // Waits for their end.
  void Wait();

 private:
  const int64_t count_;
  int pipe_[2];
};

}  // namespace dtrain::bench
