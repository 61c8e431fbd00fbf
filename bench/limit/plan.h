// LimitPlan: what a limit does: how many clients exchange what with one server, and what each computes.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain::bench {

// Of all weights and gradients; clients have no weights before the server shows them some.
inline constexpr float kFirstValue = 0.01f;

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

}  // namespace dtrain::bench
