// Exchanges: a worker's round trips of the whole flat vector: gradients there, or nothing, and weights back.
// Several may be open at a time, and are answered in order.
// Tensors travel in blocks (model/layout.h); a window bounds how many of them are open with each ps.
// It waits for nothing: what it is asked to send goes out as far as the windows have room, the rest as the
// answers come that it is given.
// Owner: PsClient. Thread: the worker's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "net/codec.h"
#include "net/lent_buffer.h"
#include "trainer/config/config.h"
#include "trainer/hooks/step_stats.h"
#include "trainer/model/layout.h"
#include "trainer/peer/conversation.h"

namespace dtrain {

// RoundVersions: sync: of which version the weights are that a worker has, and whether its gradients came in
// time for their rounds. One exchange is open at a time. Owner: Exchanges.
class RoundVersions {
 public:
  // A block of weights of this version is the answer to exchange `number`.
  void OnAnswer(int64_t number, uint64_t version) {
    const bool first = number != counted_;
    counted_ = number;
    oldest_ = first ? version : std::min(oldest_, version);
    newest_ = first ? version : std::max(newest_, version);
  }
  // That was the last of the exchange, which had a gradient of the weights before, or none.
  void OnWhole(bool gradient) {
    if (gradient && oldest_ != version_ + 1) ++too_late_;
    version_ = oldest_;
  }

  // Of the weights that the next gradient is computed from.
  uint64_t version() const { return version_; }
  // The latest weights are of several versions.
  bool torn() const { return oldest_ != newest_; }
  // Gradients that came too late for their round.
  int64_t too_late() const { return too_late_; }

 private:
  int64_t counted_ = -1;  // the exchange that the answers are of
  uint64_t oldest_ = 0;   // of its answers
  uint64_t newest_ = 0;
  uint64_t version_ = 0;
  int64_t too_late_ = 0;
};

class Exchanges {
 public:
  // `links`: to each ps of the layout, with room for WindowOf() its range; they outlive this.
  Exchanges(const Config& config, const Layout& layout, const std::vector<Conversation*>& links);

  // Blocks that may be open with the ps that owns `range`.
  static int64_t WindowOf(const TrainConfig& train, Range range);

  // How a worker begins, as its Start says (net/messages.fbs).
  struct Entry {
    std::vector<uint32_t> together;  // those that start with it
    uint64_t clock = 0;
    bool resume = false;
    uint64_t version = 0;
  };

  // The run that messages are of from now on.
  void set_run(RunId run) { run_ = run; }
  // From now on messages say where values are, a DeviceAddress for each block, instead of carrying them; a
  // gradient to push is the list of its blocks' addresses, and weights are not copied.
  void PushAddresses() { by_address_ = true; }
  // Called with each part of the weights that has arrived and was copied; may be empty.
  void set_on_weights(std::function<void(const float*, Range)> on_weights) {
    on_weights_ = std::move(on_weights);
  }
  // Where weights that arrive are copied to: the whole flat vector.
  void set_parameters(float* parameters) { parameters_ = parameters; }

  // Opens one for the gradient in `buffer` (the whole flat vector). The buffer is lent until all of it is
  // sent.
  void Push(const net::LentBuffer& buffer, uint32_t examples);
  // Opens one without a gradient, where none is open; with `entry` the worker enters by it.
  void Pull(std::optional<Entry> entry = std::nullopt);
  // `envelope` of `message` brings weights from a ps.
  void OnWeights(size_t ps, const net::Message& message, const wire::Envelope& envelope);
  // Closes the oldest open one, if every ps has answered all of it.
  bool CloseOldest();
  // Closes all: their requests were dropped with the links, and so are the granted steps.
  void DropOpen();

  // Those that are not closed yet.
  int64_t open() const { return begun_ - closed_; }
  // Whether blocks are open with that ps.
  bool awaits(size_t ps) const { return flows_[ps].answered < flows_[ps].sent; }

  // Steps granted and not yet used by Push().
  int64_t steps() const { return steps_; }
  void AddSteps(int64_t steps) { steps_ += steps; }
  // As ps 0 said last.
  int64_t global_step() const { return global_step_; }
  // Of the gradients that were answered.
  Staleness& staleness() { return staleness_; }
  // The local step behind which ps 0 has asked for an evaluation since the last call; 0: it has not.
  int64_t TakeEvaluation() { return std::exchange(evaluate_, 0); }
  // For how long ps held back an answer since the last call: the longest, in microseconds.
  int64_t TakeHeld() { return std::exchange(held_us_, 0); }
  // sync: whether the latest weights are not all of one version: an answer got lost while the others went on
  // without this worker. Entering again gets whole ones.
  bool torn() const { return sync() && versions_.torn(); }
  // Gradients that came too late for their round (sync).
  int64_t too_late() const { return versions_.too_late(); }

 private:
  struct Exchange {
    const net::LentBuffer* gradient = nullptr;  // null: a pull
    net::LentBuffer::Hold hold;                 // keeps the gradient from being written until all is sent
    uint32_t examples = 0;
    std::optional<Entry> entry;  // of a pull with which it enters
  };
  // How far a ps has come: blocks that have been sent to it, and that it has answered, of all exchanges.
  struct Flow {
    Conversation* link = nullptr;
    Range range;
    int64_t blocks = 1;
    int64_t first_block = 0;  // among those of all ps
    int64_t window = 1;       // blocks that may be open
    int64_t sent = 0;
    int64_t answered = 0;
  };
  // Of what a gradient to push consists of.
  struct Bytes {
    size_t offset = 0;
    size_t size = 0;
  };

  void Begin(Exchange exchange);
  void SendBlocks(Flow& flow);
  void SendBlock(const Flow& flow, const Exchange& exchange, int64_t block);
  Bytes PartOf(const Flow& flow, int64_t block) const;
  void DropSent();
  void TakeIn(const Flow& flow, const net::Message& message, const wire::Weights& weights);
  void CountVersion(size_t ps, const wire::Weights& weights);
  bool EveryPsAnswered(int64_t exchanges) const;
  bool sync() const { return config_.train.mode == TrainMode::kSync; }
  Exchange& ExchangeOf(int64_t number) { return ring_[static_cast<size_t>(number) % ring_.size()]; }

  const Config& config_;
  net::Encoder encoder_;
  RunId run_;
  std::vector<Flow> flows_;     // by ps
  std::vector<Exchange> ring_;  // of those that are open
  int64_t begun_ = 0;           // exchanges
  int64_t sent_ = 0;            // of which every block is on its way
  int64_t closed_ = 0;          // and has been answered
  int64_t steps_ = 0;
  int64_t global_step_ = 0;
  Staleness staleness_;
  RoundVersions versions_;  // sync
  int64_t evaluate_ = 0;    // as TakeEvaluation() returns it
  int64_t held_us_ = 0;     // the longest since TakeHeld()
  float* parameters_ = nullptr;
  std::function<void(const float*, Range)> on_weights_;
  bool by_address_ = false;
};

}  // namespace dtrain
