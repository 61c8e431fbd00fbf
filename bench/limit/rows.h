// A limit: the exchanges of a sparse model without dtrain. One client sorts the features of a batch, sends
// the gradient of the rows that an earlier batch touches with the keys of the next one, and gets the weights
// of these; the server updates and reads the rows of a table. With layers the client also makes the products
// of a step, whose inputs are the rows of a batch side by side, and the layers travel beside the rows. Left
// out are: parsing, shuffling and scaling of data, biases, activations, losses, and first values of rows,
// which are there when the clock starts. Errors end the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/limit/limit.h"
#include "bench/limit/passes.h"
#include "bench/limit/raw_socket.h"

namespace dtrain::bench {

// The initial value of all accumulators.
inline constexpr float kFirstAccumulator = 1;

// RowPlan: what the client of a limit of rows and its server do. Plain data.
struct RowPlan {
  int64_t exchanges = 1000;
  int64_t open = 1;  // exchanges that are open at a time
  int64_t batch = 128;
  int64_t features = 39;            // of a row, each with the value 1
  int64_t rows = int64_t{1} << 24;  // of the table
  int64_t width = 1;                // floats of a row: a weight, and an embedding
  bool adagrad = false;             // each float has an accumulator beside it; false: plain updates
  int64_t used_rows = 10'000'000;   // that features are drawn from, uniformly
  int64_t pool = 131'072;           // rows of data that are there in advance
  std::string ids;                  // a file of their features, uint32; empty: they are drawn
  int64_t blocks = 1;               // messages of an exchange, each for an equal part of the table
  // The sizes of layers, from the inputs on: the embeddings of a row of data, joined, and then its numbers.
  // Empty: there are none. They are one more message.
  std::vector<int64_t> layers;
  int64_t request_header = 64;  // bytes
  int64_t reply_header = 64;
  float rate = 1e-3f;

  int64_t steps_in_pool() const { return pool / batch; }
  int64_t row_floats() const { return adagrad ? 2 * width : width; }  // in the table
  // The parameters of the layers, with biases, which nobody uses.
  int64_t flat() const {
    int64_t count = 0;
    for (size_t i = 1; i < layers.size(); ++i) count += (layers[i - 1] + 1) * layers[i];
    return count;
  }
  int64_t messages() const { return blocks + (layers.empty() ? 0 : 1); }  // of an exchange
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

// Draws the features of plan.pool rows, or reads them from plan.ids.
std::vector<uint32_t> PoolOf(const RowPlan& plan);

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
  const float* rows() const { return rows_; }  // [plan.rows, plan.row_floats()]
  const std::vector<float>& layers() const { return layers_.back(); }

 private:
  // Request: a message of one block: [gradient of rows that were asked for, keys that are asked for].
  struct Request {
    RawFrame frame;
    int64_t gradients = 0;  // rows

    const AnyFloat* gradient() const { return static_cast<const AnyFloat*>(frame.data()); }
    const AnyKey* keys(int64_t width) const {
      return reinterpret_cast<const AnyKey*>(gradient() + gradients * width);
    }
    int64_t key_count(int64_t width) const {
      return static_cast<int64_t>(frame.size() / sizeof(float)) - gradients * width;
    }
  };

  void Answer();
  const std::vector<float>& AnswerRows(int64_t block, int64_t gradients);
  const std::vector<float>& AnswerLayers(int64_t gradients);

  const RowPlan plan_;
  RawSocket& socket_;
  float* rows_ = nullptr;  // in huge pages where there are such
  size_t mapped_ = 0;
  std::vector<std::vector<Request>> requests_;  // by block: those whose gradients are to come, in turn
  std::vector<std::vector<float>> replies_;     // those that may be on their way, in turn
  std::vector<std::vector<float>> layers_;      // versions that may be on their way, and last the newest
  std::vector<float> accumulators_;             // of the layers
  std::vector<char> reply_header_;
  int64_t answered_ = 0;  // messages
  uint64_t bytes_ = 0;
};

// Runs the limit once: the client in a process of its own, the server in this one.
LimitResult RunRowLimit(const RowPlan& plan);

}  // namespace dtrain::bench
