// Saver: writes the run's checkpoints to the chief's disk, on a thread of its own while the chief trains. It
// asks ps 0 for orders, reads every ps's range piece by piece, of which it holds a few MiB at a time, and
// gives the checkpoint its name when ps 0 has confirmed the order.
// Messages: docs/wire.md, Checkpoints. Owner: Worker, for one run epoch and one term.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/config.h"
#include "trainer/data/input_form.h"
#include "trainer/model/layout.h"
#include "trainer/peer/run_id.h"

namespace dtrain {

class Saver {
 public:
  // `directory` is prepared, and outlives this, as all do. `inputs`: of the data, scaled as the run has it;
  // unset: not known here. `term`: of the chief.
  Saver(const Config& config, const Layout& layout, std::optional<InputForm> inputs,
        CheckpointDirectory& directory, net::Transport& transport, RunId run, uint32_t term, Logger& log);
  ~Saver();  // what is not complete is removed
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  RunId run() const { return run_; }
  uint32_t term() const { return term_; }

 private:
  // Thrown where the run goes on without this saver.
  struct Over {};
  struct Order {
    uint64_t number = 0;
    int64_t step = 0;
    std::string positions;
    bool best = false;  // with the smallest loss so far
    double loss = 0;    // with `best`
    double accuracy = 0;
  };
  // What became of the last order.
  struct Outcome {
    uint64_t number = 0;
    std::string path;
    std::string error;
  };

  void Run();
  Order WaitForOrder(const Outcome& last);
  std::string Write(const Order& order);
  void NoteBest(const std::string& path);
  std::vector<uint64_t> WriteShard(const Order& order, size_t ps, const std::string& directory);
  // The pieces of a ps's range from `first` on, as far as they have come: reads until that of `first` is
  // here.
  net::Message ReadPiece(const Order& order, size_t ps, int64_t first, int64_t count);
  void Confirm(const Order& order);
  bool Receive(milliseconds patience, size_t* ps, net::Message* message);
  // Returns how long to wait until it is sent again.
  template <typename Build>
  milliseconds Send(size_t ps, uint64_t request, Build&& build);

  const Config& config_;
  const Layout& layout_;
  const std::optional<InputForm> inputs_;
  CheckpointDirectory& directory_;
  const RunId run_;
  const uint32_t term_;
  Logger& log_;
  const std::vector<std::string> slots_;  // the optimizer's
  std::unique_ptr<net::Channel> channel_;
  std::vector<net::NodeId> nodes_;  // by ps
  net::Encoder encoder_;
  std::vector<std::optional<net::Message>> ahead_;  // pieces that came before their turn: a ring
  int64_t asked_ = 0;                               // pieces of the shard in hand
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace dtrain
