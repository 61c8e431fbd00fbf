// Exchanges: a worker's exchanges with the ps: each sends the whole flat gradient, or nothing, and gets the
// whole flat weights back. Several may be open; they are answered in order. Tensors travel in blocks
// (model/layout.h), and a window bounds the open blocks of each ps. Nothing here waits: blocks go out while
// the windows have room, the rest when OnWeights() takes answers. Blocks of a gradient may go out while its
// other blocks are still computed (Announce).
// Of a table an exchange asks for the rows of one batch (keyed_source.h), whose weights come into that batch,
// and its gradient is of the rows that an earlier exchange has asked for. Where the model has both, the flat
// vector comes into that batch too, and the gradient is that of the flat vector and behind it that of rows.
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
#include "trainer/order/lease.h"
#include "trainer/peer/conversation.h"
#include "trainer/worker/gradient_encoder.h"
#include "trainer/worker/keyed_source.h"
#include "trainer/worker/round_versions.h"

namespace dtrain {

// The rows of a table that an exchange is about. The batches outlive it.
struct ExchangeRows {
  KeyedBatch* of = nullptr;    // whose gradient it is; null: the whole flat vector's
  KeyedBatch* asks = nullptr;  // whose rows are asked for; null: none
  bool read = false;           // in a pull: for an evaluation
  uint64_t snapshot = 0;       // in a pull: the snapshot that it reads; 0: the current weights
  float* into = nullptr;       // where the flat vector of the snapshot goes
};

class Exchanges {
 public:
  // `links`: one per ps of the layout, with room for WindowOf() its blocks. `worker`: whose these are. The
  // arguments outlive this.
  Exchanges(const Config& config, const Layout& layout, const std::vector<Conversation*>& links,
            int worker = 0);

  // The max number of open blocks with that ps.
  static int64_t WindowOf(const TrainConfig& train, const Layout& layout, size_t ps);

  // How a worker enters the run, from its Start (net/messages.fbs).
  struct Entry {
    std::vector<uint32_t> together;  // the workers that start with it
    uint64_t clock = 0;
    bool resume = false;
    uint64_t version = 0;
  };

  // The run of all further messages.
  void set_run(RunId run) { run_ = run; }
  // From now on messages carry the address of each block (DeviceAddress) instead of its values. A gradient to
  // push is the list of its blocks' addresses, and weights are not copied.
  void PushAddresses() { by_address_ = true; }
  // Called with each range of the weights that has been copied; may be empty.
  void set_on_weights(std::function<void(const float*, Range)> on_weights) {
    on_weights_ = std::move(on_weights);
  }
  // Where weights are copied to: the whole flat vector. Set it before the first exchange. Where an exchange
  // asks for rows, its batch gets them in its place.
  void set_parameters(float* parameters) { parameters_ = parameters; }

  // Opens an exchange for a gradient that is about to be computed into `buffer`. A block goes out when
  // Ready() has named all variables that it has elements of; the last block of each ps, with which the
  // gradient counts, waits for Push().
  // `taken`: as Push().
  void Announce(const net::LentBuffer& buffer, uint32_t examples, std::optional<double> weight = {},
                const std::vector<uint32_t>& taken = {});
  void Ready(Range elements);
  // Opens an exchange for the gradient in `buffer` (the whole flat vector or the rows of rows.of), which is
  // lent until it is sent; of both, in this order. `loss`: as in the message. `taken`: by ps, so many blocks
  // of it are in the weights already (Lease::taken); empty: none. If the gradient was announced, this sends
  // the rest of it.
  void Push(const net::LentBuffer& buffer, uint32_t examples, const net::PushedLoss& loss = {},
            ExchangeRows rows = {}, const std::vector<uint32_t>& taken = {});
  // Opens an exchange without a gradient. With `entry` the worker enters the run. No other may be open, but
  // of a table.
  void Pull(std::optional<Entry> entry = std::nullopt, ExchangeRows rows = {});
  // The same, of nothing but the flat vector: nobody waits for the worker until it enters again.
  void Leave();
  // Takes weights from a ps; `envelope` is that of `message`.
  void OnWeights(size_t ps, const net::Message& message, const wire::Envelope& envelope);
  // Closes the oldest open exchange. False: not every ps has answered all of it.
  bool CloseOldest();
  // Closes all exchanges and forgets the granted steps; their requests were dropped with the links.
  void DropOpen();

  // Whether a ps has not had the snapshot of a pull any more, since the last call.
  bool TakeGone() { return std::exchange(gone_, false); }

  // The number of open exchanges.
  int64_t open() const { return begun_ - closed_; }
  // Whether blocks are open with that ps.
  bool awaits(size_t ps) const { return flows_[ps].answered < flows_[ps].sent; }

  // Steps granted and not yet used by Push().
  int64_t steps() const { return steps_; }
  void AddSteps(int64_t steps) { steps_ += steps; }
  void DropSteps() { steps_ = 0; }
  // The lease that ps 0 has told since the last call (data.split: dynamic); unset: none.
  std::optional<Lease> TakeLease() { return std::exchange(lease_, std::nullopt); }
  // The global step that ps 0 last reported.
  int64_t global_step() const { return global_step_; }
  // Of the answered gradients.
  Staleness& staleness() { return staleness_; }
  // The local step after which ps 0 has asked for an evaluation since the last call; 0: none.
  int64_t TakeEvaluation() { return std::exchange(evaluate_, 0); }
  // The longest time that a ps held back an answer since the last call, in microseconds.
  int64_t TakeHeld() { return std::exchange(held_us_, 0); }
  // sync: of the answers.
  const RoundVersions& versions() const { return versions_; }
  // The bytes that compression and packed keys have spared in what was sent.
  uint64_t bytes_saved() const { return gradients_.bytes_saved(); }

 private:
  struct Exchange {
    const net::LentBuffer* gradient = nullptr;  // null: a pull
    net::LentBuffer::Hold hold;                 // keeps the gradient unchanged until all of it is sent
    uint32_t examples = 0;
    net::PushedLoss loss;
    std::optional<Entry> entry;  // set for a pull with which the worker enters
    ExchangeRows rows;
    std::vector<uint32_t> taken = {};  // of a gradient, by ps
    bool leaves = false;               // a pull with which nobody waits for the worker any more
  };
  // The progress of one ps: the blocks sent to it and answered by it, over all exchanges.
  struct Flow {
    Conversation* link = nullptr;
    Range range;
    int64_t blocks = 1;
    int64_t range_blocks = 1;    // the first of them, which are of `range`; the others are of rows
    int64_t first_in_range = 0;  // its first one among the blocks of the ranges of all ps
    int64_t first_of_rows = 0;   // and among those of all rows
    int64_t window = 1;          // the max number of open blocks
    int64_t sent = 0;
    int64_t answered = 0;

    // The block that is sent next, and the one that is answered next.
    int64_t NextSent() const { return InOrder(range_blocks, sent % blocks); }
    int64_t NextAnswered() const { return InOrder(range_blocks, answered % blocks); }
    // Whether a block is of rows, and its number among the blocks of all rows.
    bool IsOfRows(int64_t block) const { return block >= range_blocks; }
    int64_t RowBlock(int64_t block) const { return first_of_rows + block - range_blocks; }
  };

  void Begin(Exchange exchange);
  void CheckSize(const KeyedBatch& asks) const;
  void SendBlocks(Flow& flow);
  bool MaySend(const Flow& flow) const;
  void SendBlock(const Flow& flow, const Exchange& exchange, int64_t block);
  net::LentBytes TensorOf(const Flow& flow, const Exchange& exchange, int64_t block, uint64_t request,
                          uint32_t* key_bytes);
  // The form of the gradient of a block, and of the weights of an answer to it.
  net::Compression FormOf(net::Compression configured, const Flow& flow, int64_t block) const {
    if (by_address_) return net::Compression::kNone;
    return flow.IsOfRows(block) ? net::FormOfRows(configured) : configured;
  }
  Range PlaceOf(const Flow& flow, int64_t block);
  float* Destination(const Flow& flow);
  void DropSent();
  // The exchange whose block is answered next.
  Exchange& Answered(const Flow& flow) { return ExchangeOf(flow.answered / flow.blocks); }
  bool TakesAddress(const Flow& flow) { return by_address_ && Answered(flow).rows.snapshot == 0; }
  void TakeIn(const Flow& flow, const net::Message& message, const wire::Weights& weights);
  void CountVersion(size_t ps, const wire::Weights& weights);
  bool EveryPsAnswered(int64_t exchanges) const;
  Exchange& ExchangeOf(int64_t number) { return ring_[static_cast<size_t>(number) % ring_.size()]; }

  const Config& config_;
  const Layout& layout_;
  net::Encoder encoder_;
  RunId run_;
  std::vector<Flow> flows_;     // by ps
  std::vector<Exchange> ring_;  // the open ones, by number modulo size
  int64_t begun_ = 0;           // exchanges opened
  int64_t sent_ = 0;            // exchanges of which every block is sent
  int64_t closed_ = 0;          // exchanges closed
  bool announced_ = false;      // the newest one's gradient is not complete
  std::vector<Range> awaited_;  // the variables that are missing of it
  int64_t steps_ = 0;
  std::optional<Lease> lease_;
  int64_t global_step_ = 0;
  Staleness staleness_;
  RoundVersions versions_;  // sync
  int64_t evaluate_ = 0;    // the result of TakeEvaluation()
  bool gone_ = false;       // the result of TakeGone()
  int64_t held_us_ = 0;     // the longest since TakeHeld()
  float* parameters_ = nullptr;
  std::function<void(const float*, Range)> on_weights_;
  bool by_address_ = false;
  GradientEncoder gradients_;
};

}  // namespace dtrain
