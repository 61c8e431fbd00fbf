// A limit: the exchanges of a run without dtrain. Clients compute a step and exchange blocks with one server,
// over the same kind of sockets. Errors end the process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/limit/passes.h"
#include "bench/limit/plan.h"
#include "bench/limit/raw_socket.h"

namespace dtrain::bench {

// A client of a limit: a DEALER that computes a step, sends the gradient and receives the weights. Runs
// `plan.exchanges` exchanges with the server at `endpoint` and returns its last weights. Thread: one, of the
// client's process.
std::vector<float> RunLimitClient(const LimitPlan& plan, const std::string& endpoint);

struct LimitResult {
  double exchanges_per_s = 0;
  double bytes_per_exchange = 0;  // headers and payloads, both ways
};

// LimitServer: the parameter server of a limit: a ROUTER that applies each block of gradients and answers
// with the new block of weights. Owner and thread: the first process of the limit.
class LimitServer {
 public:
  LimitServer(const LimitPlan& plan, RawSocket& socket);

  // Starts the clients' exchanges when all are connected, and answers them until each has finished.
  LimitResult Run();
  // Returns the newest version of each block.
  std::vector<float> Weights() const;

 private:
  // Request: a client's exchange between its arrival and its answer.
  struct Request {
    RawFrame client;
    RawFrame header;
    RawFrame gradient;
  };

  void AwaitClients();
  void Take(Request* request);
  void Reply(Request& request, const float* weights);
  // Answers one client, or all of them if the plan has rounds.
  void Answer();
  void AnswerRound();
  // Returns the block for a reply: a new version if there is a gradient.
  const float* Version(int64_t block, const AnyFloat* gradient);

  const LimitPlan plan_;
  RawSocket& socket_;
  std::vector<char> reply_header_;
  std::vector<float> sum_;  // of the gradients of a round
  // Bytes that are being sent are never written: the next version of a block uses other memory.
  std::vector<std::vector<float>> versions_;
  std::vector<size_t> current_;  // by block: index into versions_
  uint64_t bytes_ = 0;
};

// Runs a limit once: the clients in processes of their own, the server in this one. Forks, so this process
// should have no threads. Errors end the process.
LimitResult RunLimit(const LimitPlan& plan);

}  // namespace dtrain::bench
