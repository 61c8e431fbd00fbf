// LimitServer: the parameter server of a limit: a ROUTER that answers each block of gradients with the block
// of weights that it makes of it. Owner and thread: the limit's first process.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/limit/passes.h"
#include "bench/limit/plan.h"
#include "bench/limit/raw_socket.h"

namespace dtrain::bench {

struct LimitResult {
  double exchanges_per_s = 0;
  double bytes_per_exchange = 0;  // headers and payloads, both ways
};

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
  // Of one client, or of all where the plan has rounds.
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

}  // namespace dtrain::bench
