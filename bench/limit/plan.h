// LimitPlan: what the clients of a limit and its server do. Plain data.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain::bench {

// The initial value of all weights and gradients; clients have no weights before the first reply.
inline constexpr float kFirstValue = 0.01f;

// The number of clients, what they exchange with the server, and what each computes.
struct LimitPlan {
  int64_t clients = 1;
  int64_t exchanges = 1000;     // per client
  int64_t warm_up = 0;          // exchanges of all clients before the clock starts
  int64_t open = 1;             // open exchanges per client
  int64_t request_header = 64;  // bytes; the first 8 are the block's number
  int64_t reply_header = 64;
  int64_t parameters = 0;  // floats that the server holds
  int64_t block = 0;       // floats of a payload frame, a part of the parameters; 0: headers only
  bool gradients = true;   // requests carry a block; false: only replies do
  bool rounds = false;     // one version from the gradients of all clients answers all; single block only
  bool alone = false;      // one thread computes and applies all parameters, and exchanges nothing
  bool passes = true;      // blocks are applied and copied; false: only moved
  float rate = 1e-9f;      // so small that weights stay near their initial value in a run of any length
  // The products of a step before each request: inputs, hidden layers, outputs. Empty: none.
  std::vector<int64_t> layers;
  int64_t batch = 100;

  int64_t blocks() const { return block == 0 ? 1 : parameters / block; }
};

}  // namespace dtrain::bench
