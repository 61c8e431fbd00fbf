// ShardReport: what one ps tells of its final weights: their checksums, variable by variable, which are its
// part of model_crc, whether all values are finite, and, of small models, the values. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/model/layout.h"

namespace dtrain {

struct ShardReport {
  struct Part {
    ModelPart sum;
    std::vector<float> values;  // of a model of at most kSmallModel values; else empty
  };
  std::vector<Part> parts;
  // What its channel has sent and received so far, headers and payloads.
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  std::string non_finite;  // the first value that is not finite, "weights/W1[3, 5] is nan"; empty: all are

  // The values of models up to this size are in the result.
  static constexpr int64_t kSmallModel = 64;
};

// `weights_of(block)`: the values of a block (model/layout.h) of that ps's range, valid until the next call.
ShardReport ReportShard(const Layout& layout, int ps_index,
                        const std::function<const float*(int64_t)>& weights_of);

}  // namespace dtrain
