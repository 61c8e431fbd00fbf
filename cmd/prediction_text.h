// PredictionText: predictions as rows of CSV or as JSON lines. Numbers are the shortest text that reads back
// as the same float32. Owner: RunPredictCommand. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/config.h"

namespace dtrain {

enum class PredictionFormat { kCsv, kJsonLines };

class PredictionText {
 public:
  // `class_names`: by number; empty: classes are numbers.
  PredictionText(PredictionFormat format, const ModelConfig& model, std::vector<std::string> class_names);

  // Of CSV, its first line; of JSON lines nothing.
  std::string Header() const;
  // One row, with its end. `outputs`: of the model. `id`: as JSON, empty for none.
  std::string Row(const float* outputs, const std::string& id);

 private:
  const std::string& ClassText(size_t number) const { return texts_[number]; }
  std::string CsvRow(const float* outputs);
  std::string JsonRow(const float* outputs, const std::string& id);

  const PredictionFormat format_;
  const bool linear_;
  const int64_t outputs_;
  std::vector<std::string> texts_;    // of the classes, as the format has them
  std::vector<std::string> columns_;  // of their probabilities
  std::vector<float> probabilities_;
};

}  // namespace dtrain
