// MeasuredRound: the gradients of one synchronous round on one ps, from measuring the norm of their mean
// until they are applied. It takes them out of their exchanges, so that exactly the measured gradients are
// applied even when a worker leaves in between.
// Owner: SyncRule, with train.optimizer.clip_norm. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/optimizer_ops.h"
#include "net/codec.h"
#include "trainer/ps/leader.h"
#include "trainer/ps/row_desk.h"
#include "trainer/shard/shard.h"

namespace dtrain {

// The push in a message that is verified already.
inline const wire::Push& PushIn(const net::Message& message) {
  return *wire::GetEnvelope(message.header.data())->body_as_Push();
}

// What a gradient weighs in its round: nothing if the weights have it already.
inline double WeightIn(const wire::Push& push) {
  return push.empty() || push.examples() == 0 ? 0 : push.weight().value_or(push.examples());
}

class MeasuredRound {
 public:
  // An exchange that waits for its answer.
  struct Waiting {
    RoundExchange exchange;
    uint64_t request = 0;
  };

  explicit MeasuredRound(int64_t blocks) : parts_(static_cast<size_t>(blocks)) {}

  // Begins round `number`; drops the rest of the round before.
  void Begin(uint64_t number);
  void Take(int64_t block, Waiting waiting) { PartOf(block).waiting.push_back(waiting); }
  // Adds a block of a gradient; call it in the order of the workers.
  void TakeGradient(int64_t block, net::Message message, RowDesk::Keys keys) {
    PartOf(block).gradients.push_back({std::move(message), std::move(keys)});
  }
  // Computes squares() of all gradients taken.
  void Measure(Shard& shard);
  void set_scale(double scale) { scale_ = scale; }

  uint64_t number() const { return number_; }  // 0: none yet
  const gpu::SquareSum& squares() const { return squares_; }
  // The factor for the mean; unset until ps 0 has sent it.
  const std::optional<double>& scale() const { return scale_; }

  const std::vector<Waiting>& WaitingFor(int64_t block) { return PartOf(block).waiting; }
  void Gradients(int64_t block, RoundGradients* gradients);
  // Drops the gradients of a block, which are applied.
  void Drop(int64_t block) { PartOf(block).gradients.clear(); }

 private:
  struct Gradient {
    net::Message message;
    RowDesk::Keys keys;
  };
  struct Part {
    std::vector<Waiting> waiting;
    std::vector<Gradient> gradients;
  };
  Part& PartOf(int64_t block) { return parts_[static_cast<size_t>(block)]; }

  uint64_t number_ = 0;
  gpu::SquareSum squares_;
  std::optional<double> scale_;
  std::vector<Part> parts_;   // by block
  RoundGradients gradients_;  // of the current block; kept to spare the allocation
};

}  // namespace dtrain
