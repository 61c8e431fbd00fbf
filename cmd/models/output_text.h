// The output of dtrain eval and dtrain predict: tables and JSON for an evaluation, a row for each prediction.
// Owner: the command. Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cmd/models/evaluation.h"
#include "trainer/config/choices.h"
#include "trainer/result/run_summary.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {

// Returns the figures of one checkpoint on one set or on two and, for a classifier, a table of the classes
// and their confusion.
std::string EvaluationText(const std::vector<EvaluationOutcome>& outcomes);
// Returns the figures on one line, for --follow.
std::string EvaluationLine(const EvaluationOutcome& outcome);
// Returns everything as one line of JSON; the second set is a member of the first.
std::string EvaluationJson(const std::vector<EvaluationOutcome>& outcomes);
// Returns the summary for --result.
RunSummary EvaluationSummary(const std::vector<EvaluationOutcome>& outcomes);

// Quotes a field as RFC 4180 says.
std::string CsvFieldText(const std::string& text);

enum class PredictionFormat { kCsv, kJsonLines };

// PredictionText: formats predictions as rows of CSV or as JSON lines. Numbers are the shortest text that
// reads back as the same float32.
class PredictionText {
 public:
  // `raw`: classes and probabilities are left out, and the logits take their place. `class_names`: by class
  // number; empty: classes have no names. `kept`: the names of what is passed on of each row. `threshold`: as
  // for PredictedClass(). Throws UserError if a name is that of another or of a prediction.
  PredictionText(PredictionFormat format, const ModelConfig& model, bool raw,
                 std::vector<std::string> class_names, const std::vector<std::string>& kept = {},
                 std::optional<double> threshold = {});

  // Returns the first line of CSV; empty for JSON lines.
  std::string Header() const;
  // Returns one row with its end. `outputs` are the model's. `id` is JSON text, empty for none. `kept`: as
  // many as the constructor has got names.
  std::string Row(const float* outputs, const std::string& id, const KeptField* kept = nullptr);

 private:
  void AddClasses(const std::vector<std::string>& class_names, std::set<std::string>* names);
  const std::string& ClassText(size_t number) const { return texts_[number]; }
  std::string CsvRow(const float* outputs, const KeptField* kept);
  std::string JsonRow(const float* outputs, const std::string& id, const KeptField* kept);
  std::string ByClass(const float* numbers) const;

  const PredictionFormat format_;
  const bool linear_;
  const bool log_link_;  // predictions are e^output
  const bool scores_;    // of two classes, without probabilities
  const bool raw_;       // and it classifies
  const int64_t outputs_;
  const std::optional<double> threshold_;
  std::vector<std::string> texts_;    // the class names, escaped for the format
  std::vector<std::string> columns_;  // the names of the probabilities, or of the logits
  std::vector<std::string> kept_;     // the names of what is kept, escaped for the format
  bool keeps_id_ = false;             // an id is among it
  std::vector<float> probabilities_;  // or the score
};

}  // namespace dtrain
