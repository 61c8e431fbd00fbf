// Evaluation of weights on a whole set, and the checksum of a whole model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/source.h"
#include "trainer/model/model.h"

namespace dtrain {

// Loss and accuracy over everything that `source` gives. `breather` is called between batches; it may throw.
Evaluation EvaluateAll(Model& model, const float* parameters, BatchSource& source,
                       const std::function<void()>& breather);

// The rows that eval.on names, in order; null where the config has none of them.
std::unique_ptr<BatchSource> EvaluationSource(const Config& config, const LoadedData& data);

// One ps's checksum of the rows of a variable that it owns.
struct ModelPart {
  std::string name;
  uint64_t first_row = 0;
  uint64_t bytes = 0;
  uint32_t crc = 0;
};
// model_crc: CRC-32C over all weights, variables by name in byte order, rows in order; 8 hex digits.
std::string ModelChecksum(std::vector<ModelPart> parts);

}  // namespace dtrain
