#include "trainer/worker/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "base/crc32c.h"

namespace dtrain {

Evaluation EvaluateAll(Model& model, const float* parameters, BatchSource& source,
                       const std::function<void()>& breather, Figures* figures) {
  EvaluationSum sum(model, parameters, figures);
  Batch batch;
  while (source.Next(&batch)) {
    sum.Add(batch);
    breather();
  }
  return sum.sum();
}

void EvaluationSum::Add(const Batch& batch) {
  if (figures_ == nullptr) {
    sum_.Add(model_.Evaluate(parameters_, batch));
    return;
  }
  outputs_.resize(std::max(outputs_.size(), static_cast<size_t>(batch.rows * model_.outputs())));
  sum_.Add(model_.Evaluate(parameters_, batch, outputs_.data()));
  figures_->Add(batch, outputs_.data());
}

std::unique_ptr<BatchSource> EvaluationSource(const Config& config, const LoadedData& data) {
  const int64_t rows = config.train.batch_size * config.device.towers();  // of a batch of all devices
  if (config.eval.on == EvalOn::kValidation) {
    return MakeSequentialSource(data.train, 0, config.data.validation, rows);
  }
  if (data.test == nullptr || !data.test->rows()) return nullptr;
  return MakeSequentialSource(data.test, 0, *data.test->rows(), rows);
}

std::string ModelChecksum(std::vector<ModelPart> parts) {
  std::sort(parts.begin(), parts.end(), [](const ModelPart& a, const ModelPart& b) {
    return std::tie(a.name, a.first_row) < std::tie(b.name, b.first_row);
  });
  uint32_t crc = 0;
  for (const ModelPart& part : parts) crc = Crc32cCombine(crc, part.crc, part.bytes);
  return fmt::format("{:08x}", crc);
}

}  // namespace dtrain
