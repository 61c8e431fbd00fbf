// What dtrain eval and dtrain predict print: tables and JSON of an evaluation, a row for each prediction.
// Owner: the command. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/models/evaluation.h"
#include "trainer/config/config.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// The figures and, of a model that classifies, a table of the classes and their confusion.
std::string EvaluationText(const EvaluationOutcome& outcome);
// The figures on one line: with --follow.
std::string EvaluationLine(const EvaluationOutcome& outcome);
// All of it as one line of JSON.
std::string EvaluationJson(const EvaluationOutcome& outcome);
// For --result.
RunSummary EvaluationSummary(const EvaluationOutcome& outcome);

enum class PredictionFormat { kCsv, kJsonLines };

// PredictionText: predictions as rows of CSV or as JSON lines. Numbers are the shortest text that reads back
// as the same float32.
class PredictionText {
 public:
  // `class_names`: by number; empty: classes are numbers.
  PredictionText(PredictionFormat format, const ModelConfig& model, std::vector<std::string> class_names);

  // The first line of CSV; JSON lines have none.
  std::string Header() const;
  // One row, with its end. `outputs` are the model's. `id`: as JSON, empty for none.
  std::string Row(const float* outputs, const std::string& id);

 private:
  const std::string& ClassText(size_t number) const { return texts_[number]; }
  std::string CsvRow(const float* outputs);
  std::string JsonRow(const float* outputs, const std::string& id);

  const PredictionFormat format_;
  const bool linear_;
  const int64_t outputs_;
  std::vector<std::string> texts_;    // the classes' names, as the format has them
  std::vector<std::string> columns_;  // the names of their probabilities
  std::vector<float> probabilities_;
};

}  // namespace dtrain
