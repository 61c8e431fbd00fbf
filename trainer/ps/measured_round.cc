#include "trainer/ps/measured_round.h"

namespace dtrain {

void MeasuredRound::Begin(uint64_t number) {
  number_ = number;
  squares_ = {};
  scale_.reset();
  for (Part& part : parts_) {
    part.waiting.clear();
    part.gradients.clear();
  }
}

void MeasuredRound::Measure(ParameterShard& shard) {
  for (int64_t block = 0; block < static_cast<int64_t>(parts_.size()); ++block) {
    Views(block, &views_);
    shard.AddSquaresOfMean(block, views_, &squares_);
  }
}

void MeasuredRound::Views(int64_t block, std::vector<net::TensorView>* gradients) {
  gradients->clear();
  for (const net::Message& message : PartOf(block).gradients) {
    gradients->push_back(net::Tensor(message, PushIn(message)));
  }
}

}  // namespace dtrain
