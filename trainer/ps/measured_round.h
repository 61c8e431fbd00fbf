// MeasuredRound: the gradients of one synchronous round on one ps, from the moment when the norm of their
// mean is measured until they are applied. They are taken out of the exchanges in which they came, so that
// what was measured is what is applied, whoever leaves meanwhile. Owner: SyncRule, with
// train.optimizer.clip_norm. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/optimizer_ops.h"
#include "net/codec.h"
#include "trainer/ps/leader.h"
#include "trainer/shard/parameter_shard.h"

namespace dtrain {

// The push in a message that was verified when it came.
inline const wire::Push& PushIn(const net::Message& message) {
  return *wire::GetEnvelope(message.header.data())->body_as_Push();
}

class MeasuredRound {
 public:
  // One that waits for its answer.
  struct Waiting {
    RoundExchange exchange;
    uint64_t request = 0;
  };

  explicit MeasuredRound(int64_t blocks) : parts_(static_cast<size_t>(blocks)) {}

  // Begins round `number`; what is left of another is dropped.
  void Begin(uint64_t number);
  void Take(int64_t block, Waiting waiting) { PartOf(block).waiting.push_back(waiting); }
  // A gradient's block. In the order of its workers.
  void TakeGradient(int64_t block, net::Message message) {
    PartOf(block).gradients.push_back(std::move(message));
  }
  // The norm of all that was taken.
  void Measure(ParameterShard& shard);
  void set_scale(double scale) { scale_ = scale; }

  uint64_t number() const { return number_; }  // 0: none yet
  const gpu::SquareSum& squares() const { return squares_; }
  // What the mean is to be multiplied by; unset until ps 0 knows.
  const std::optional<double>& scale() const { return scale_; }

  const std::vector<Waiting>& WaitingFor(int64_t block) { return PartOf(block).waiting; }
  void Views(int64_t block, std::vector<net::TensorView>* gradients);
  // The gradients were applied.
  void Drop(int64_t block) { PartOf(block).gradients.clear(); }

 private:
  struct Part {
    std::vector<Waiting> waiting;
    std::vector<net::Message> gradients;
  };
  Part& PartOf(int64_t block) { return parts_[static_cast<size_t>(block)]; }

  uint64_t number_ = 0;
  gpu::SquareSum squares_;
  std::optional<double> scale_;
  std::vector<Part> parts_;             // by block
  std::vector<net::TensorView> views_;  // of the block in hand; kept to spare the allocation
};

}  // namespace dtrain
