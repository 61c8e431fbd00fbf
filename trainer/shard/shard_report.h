// ShardReport: what one ps reports on its final weights: the checksums of its parts of the variables, which
// make up model_crc, the first value that is not finite, and the values of a small model. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/model/layout.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

struct ShardReport {
  struct Part {
    ModelPart sum;
    std::vector<float> values;  // of a model of at most kSmallModel values; else empty
  };
  std::vector<Part> parts;
  // Of the ps's channel so far, headers and payloads.
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  int64_t bytes_saved = 0;  // by compression
  std::string non_finite;   // the first such value, "weights/W1[3, 5] is nan"; empty: none
  std::optional<TableFigures> table = std::nullopt;  // of a hash table

  // The result shows the values of models up to this size.
  static constexpr int64_t kSmallModel = 64;
};

// `weights_of(block)`: the values of a block (model/layout.h) of that ps's range; valid until its next call.
ShardReport ReportShard(const Layout& layout, int ps_index,
                        const std::function<const float*(int64_t)>& weights_of);

}  // namespace dtrain
