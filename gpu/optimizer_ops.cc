#include "gpu/optimizer_ops.h"

#include "base/check.h"
#include "gpu/cpu/ops.h"
#include "gpu/cuda/ops.h"

namespace dtrain::gpu {
namespace {

bool OnDevice(const Stream& stream) { return stream.backend() == Backend::kCuda; }

void CheckSizes(const Update& update) {
  DT_CHECK(update.weights.size == update.updated.size, update.weights.size, update.updated.size);
}
void CheckSizes(const Update& update, Span<float> slot) {
  CheckSizes(update);
  DT_CHECK(update.weights.size == slot.size, update.weights.size, slot.size);
}

}  // namespace

void SgdStep(Stream& stream, const Update& update, float learning_rate) {
  CheckSizes(update);
  if (OnDevice(stream)) return cuda::SgdStep(stream.queue(), update, learning_rate);
  cpu::SgdStep(update, learning_rate);
}

void MomentumStep(Stream& stream, const Update& update, const MomentumRule& rule, Span<float> velocity) {
  CheckSizes(update, velocity);
  if (OnDevice(stream)) return cuda::MomentumStep(stream.queue(), update, rule, velocity);
  cpu::MomentumStep(update, rule, velocity);
}

void AdagradStep(Stream& stream, const Update& update, const AdagradRule& rule, Span<float> accumulator) {
  CheckSizes(update, accumulator);
  if (OnDevice(stream)) return cuda::AdagradStep(stream.queue(), update, rule, accumulator);
  cpu::AdagradStep(update, rule, accumulator);
}

void RmspropStep(Stream& stream, const Update& update, const RmspropRule& rule, Span<float> mean_square) {
  CheckSizes(update, mean_square);
  if (OnDevice(stream)) return cuda::RmspropStep(stream.queue(), update, rule, mean_square);
  cpu::RmspropStep(update, rule, mean_square);
}

void AdamStep(Stream& stream, const Update& update, const AdamRule& rule, Span<float> m, Span<float> v) {
  CheckSizes(update, m);
  CheckSizes(update, v);
  if (OnDevice(stream)) return cuda::AdamStep(stream.queue(), update, rule, m, v);
  cpu::AdamStep(update, rule, m, v);
}

void FtrlStep(Stream& stream, const Update& update, const FtrlRule& rule, Span<float> z, Span<float> n) {
  CheckSizes(update, z);
  CheckSizes(update, n);
  if (OnDevice(stream)) return cuda::FtrlStep(stream.queue(), update, rule, z, n);
  cpu::FtrlStep(update, rule, z, n);
}

}  // namespace dtrain::gpu
