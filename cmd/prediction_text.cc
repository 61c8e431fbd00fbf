#include "cmd/prediction_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "trainer/metrics/metrics.h"

namespace dtrain {
namespace {

// RFC 4180.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos && !text.empty() && text.front() != ' ' &&
      text.back() != ' ') {
    return text;
  }
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string(2, c) : std::string(1, c);
  return field + '"';
}

std::string JsonText(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// JSON knows no other numbers.
std::string JsonNumber(float value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

}  // namespace

PredictionText::PredictionText(PredictionFormat format, const ModelConfig& model,
                               std::vector<std::string> class_names)
    : format_(format), linear_(model.kind == ModelKind::kLinear), outputs_(*model.outputs) {
  if (linear_) return;
  const auto classes = static_cast<size_t>(ClassCount(outputs_));
  probabilities_.resize(classes);
  for (size_t k = 0; k < classes; ++k) {
    const bool named = k < class_names.size();
    const std::string name = named ? class_names[k] : fmt::format("{}", k);
    const std::string column = "probability_" + name;
    const bool csv = format == PredictionFormat::kCsv;
    texts_.push_back(csv ? CsvField(name) : named ? JsonText(name) : name);
    columns_.push_back(csv ? CsvField(column) : JsonText(name));
  }
}

std::string PredictionText::Header() const {
  if (format_ == PredictionFormat::kJsonLines) return "";
  std::string line = "prediction";
  for (const std::string& column : columns_) line += "," + column;
  return line + "\n";
}

std::string PredictionText::Row(const float* outputs, const std::string& id) {
  if (!linear_) Probabilities(outputs, outputs_, probabilities_.data());
  return format_ == PredictionFormat::kCsv ? CsvRow(outputs) : JsonRow(outputs, id);
}

std::string PredictionText::CsvRow(const float* outputs) {
  if (linear_) return fmt::format("{}\n", *outputs);
  std::string row = ClassText(static_cast<size_t>(PredictedClass(outputs, outputs_)));
  for (const float probability : probabilities_) row += fmt::format(",{}", probability);
  return row + "\n";
}

std::string PredictionText::JsonRow(const float* outputs, const std::string& id) {
  std::string row = id.empty() ? "{" : "{\"id\":" + id + ",";
  if (linear_) return row + "\"prediction\":" + JsonNumber(*outputs) + "}\n";
  row += "\"prediction\":" + ClassText(static_cast<size_t>(PredictedClass(outputs, outputs_)));
  row += ",\"probabilities\":{";
  for (size_t k = 0; k < probabilities_.size(); ++k) {
    row += (k > 0 ? "," : "") + columns_[k] + ":" + JsonNumber(probabilities_[k]);
  }
  return row + "}}\n";
}

}  // namespace dtrain
