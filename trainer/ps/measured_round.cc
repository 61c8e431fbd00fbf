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

void MeasuredRound::Measure(Shard& shard) {
  for (int64_t block = 0; block < static_cast<int64_t>(parts_.size()); ++block) {
    Gradients(block, &gradients_);
    shard.AddSquaresOfMean(block, gradients_, &squares_);
  }
}

void MeasuredRound::Gradients(int64_t block, RoundGradients* gradients) {
  gradients->Clear();
  for (const Gradient& gradient : PartOf(block).gradients) {
    const wire::Push& push = PushIn(gradient.message);
    gradients->Add(GradientIn(gradient.message, push, *gradient.keys), WeightIn(push));
  }
}

}  // namespace dtrain
