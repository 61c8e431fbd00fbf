// A limit: the exchanges of a sparse model without dtrain. One client sorts the features of a batch, sends
// the gradient of the rows that an earlier batch touches with the keys of the next one, and gets the weights
// of these; the server updates and reads the rows of a table. Errors end the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/limit/limit.h"
#include "bench/limit/raw_socket.h"

namespace dtrain::bench {

// Numbers inside a received frame have no alignment.
using AnyKey = uint32_t __attribute__((aligned(1)));

// RowPlan: what the client of a limit of rows and its server do. Plain data.
struct RowPlan {
  int64_t exchanges = 1000;
  int64_t open = 1;  // exchanges that are open at a time
  int64_t batch = 128;
  int64_t features = 39;            // of a row, each with the value 1
  int64_t rows = int64_t{1} << 24;  // of the table, a float each
  int64_t used_rows = 10'000'000;   // that features are drawn from, uniformly
  int64_t pool = 131'072;           // rows of data that are drawn in advance
  int64_t blocks = 1;               // messages of an exchange, each for an equal part of the table
  int64_t request_header = 64;      // bytes
  int64_t reply_header = 64;
  float rate = 1e-3f;

  int64_t steps_in_pool() const { return pool / batch; }
};

// RowBatch: the keys of a batch, ascending and each once, and which of them each feature is.
class RowBatch {
 public:
  // `ids`: [count].
  void Fill(const uint32_t* ids, int64_t count, const RowPlan& plan);

  const std::vector<uint32_t>& keys() const { return keys_; }
  const std::vector<uint32_t>& places() const { return places_; }
  // Where the keys of each block begin, and the end.
  const std::vector<int64_t>& firsts() const { return firsts_; }

 private:
  void Sort(int64_t count, int key_bits);

  std::vector<uint64_t> numbers_, sorted_;
  std::vector<uint32_t> counts_;
  std::vector<uint32_t> keys_, places_;
  std::vector<int64_t> firsts_;
};

// Draws the features of plan.pool rows.
std::vector<uint32_t> DrawFeatures(const RowPlan& plan);

// Runs plan.exchanges exchanges with the server at `endpoint`. Thread: one, of the client's process.
void RunRowClient(const RowPlan& plan, const std::string& endpoint);

// RowServer: the table. Owner and thread: the first process of the limit.
class RowServer {
 public:
  RowServer(const RowPlan& plan, RawSocket& socket);
  ~RowServer();
  RowServer(const RowServer&) = delete;
  RowServer& operator=(const RowServer&) = delete;

  // Answers the client until it has finished.
  LimitResult Run();
  const float* weights() const { return weights_; }

 private:
  // Request: a message of one block: [gradient of rows that were asked for, keys that are asked for].
  struct Request {
    RawFrame frame;
    int64_t gradients = 0;

    const AnyFloat* gradient() const { return static_cast<const AnyFloat*>(frame.data()); }
    const AnyKey* keys() const { return reinterpret_cast<const AnyKey*>(gradient() + gradients); }
    int64_t key_count() const { return static_cast<int64_t>(frame.size() / sizeof(float)) - gradients; }
  };

  void Answer();
  void Update(const AnyKey* keys, const AnyFloat* gradient, int64_t count);
  void Gather(const AnyKey* keys, int64_t count, float* out) const;

  const RowPlan plan_;
  RawSocket& socket_;
  float* weights_ = nullptr;  // [rows], in huge pages where there are such
  size_t mapped_ = 0;
  std::vector<std::vector<Request>> requests_;  // by block: those whose gradients are to come, in turn
  std::vector<std::vector<float>> replies_;     // those that may be on their way, in turn
  std::vector<char> reply_header_;
  int64_t answered_ = 0;
  uint64_t bytes_ = 0;
};

// Runs the limit once: the client in a process of its own, the server in this one.
LimitResult RunRowLimit(const RowPlan& plan);

}  // namespace dtrain::bench
