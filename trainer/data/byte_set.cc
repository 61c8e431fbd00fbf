#include "trainer/data/byte_set.h"

#include <utility>

#include "base/check.h"
#include "gpu/ops.h"

namespace dtrain {

ByteSet::ByteSet(std::vector<uint8_t> bytes, std::vector<uint8_t> labels, int64_t inputs, int64_t classes)
    : bytes_(std::move(bytes)), labels_(std::move(labels)), inputs_(inputs), classes_(classes) {
  DT_CHECK(bytes_.size() == labels_.size() * static_cast<size_t>(inputs), bytes_.size(), labels_.size(),
           inputs);
}

void ByteSet::Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels, float*) const {
  if (inputs != nullptr) {
    gpu::Stream stream;
    gpu::GatherBytes(stream, {bytes(), {rows, count}}, {inputs, count, inputs_});
  }
  for (int64_t i = 0; i < count; ++i) labels[i] = labels_[rows[i]];
}

}  // namespace dtrain
