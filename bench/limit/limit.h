// A limit: the exchange of a run without dtrain: clients that compute a step and exchange blocks with one
// server, over the same sockets. Errors end the process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/limit/passes.h"
#include "bench/limit/raw_socket.h"

namespace dtrain::bench {

// The first value of all weights and gradients; clients have no weights before the server shows them some.
inline constexpr float kFirstValue = 0.01f;

// LimitPlan: how many clients exchange what with one server, and what each computes.
struct LimitPlan {
  int64_t clients = 1;
  int64_t exchanges = 1000;     // of each client
  int64_t warm_up = 0;          // exchanges of all clients before the clock starts
  int64_t open = 1;             // exchanges that a client has open
  int64_t request_header = 64;  // bytes; the first 8 are the block's number
  int64_t reply_header = 64;
  int64_t parameters = 0;  // floats that the server holds
  int64_t block = 0;       // floats of a payload frame, a part of the parameters; 0: headers alone
  bool gradients = true;   // whether requests carry a block, or replies alone do
  bool rounds = false;     // whether all clients' gradients make one version, which answers all; of one block
  bool passes = true;      // whether blocks are applied and copied, or only moved
  float rate = 1e-9f;      // so small that weights stay near where they began, however long the run is
  // The step's products before each request: inputs, hidden layers, outputs. Empty: none.
  std::vector<int64_t> layers;
  int64_t batch = 100;

  int64_t blocks() const { return block == 0 ? 1 : parameters / block; }
};

// A client of a limit, a DEALER that computes a step, sends what it made and takes in the weights: runs
// `plan.exchanges` exchanges with the server at `endpoint` and returns the weights that it holds then.
// Thread: one, of the client's process.
std::vector<float> RunLimitClient(const LimitPlan& plan, const std::string& endpoint);

struct LimitResult {
  double exchanges_per_s = 0;
  double bytes_per_exchange = 0;  // headers and payloads, both ways
};

// LimitServer: the parameter server of a limit: a ROUTER that answers each block of gradients with the block
// of weights that it makes of it. Owner and thread: the limit's first process.
class LimitServer {
 public:
  LimitServer(const LimitPlan& plan, RawSocket& socket);

  // Lets the clients begin when all are here, and answers them until each has had its exchanges.
  LimitResult Run();
  // The newest version of each block.
  std::vector<float> Weights() const;

 private:
  // A client's exchange, from its arrival to its answer.
  struct Request {
    RawFrame client;
    RawFrame header;
    RawFrame gradient;
  };

  void AwaitClients();
  void Take(Request* request);
  void Reply(Request& request, const float* weights);
  // Answers one client, or all where the plan has rounds.
  void Answer();
  void AnswerRound();
  // The block that a reply shows: a new version where there is a gradient.
  const float* Version(int64_t block, const AnyFloat* gradient);

  const LimitPlan plan_;
  RawSocket& socket_;
  std::vector<char> reply_header_;
  std::vector<float> sum_;  // of a round's gradients
  // Bytes on their way are never written: the next version of a block goes to another place.
  std::vector<std::vector<float>> versions_;
  std::vector<size_t> current_;  // by block: index into versions_
  uint64_t bytes_ = 0;
};

// One run of a limit: the clients in processes of their own, the server in this one. Forks, so this process
// should have no threads. Errors end it.
LimitResult RunLimit(const LimitPlan& plan);

}  // namespace dtrain::bench
