#include "cmd/models/why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/models/largest_weights.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

// A feature that may be told: of the row the i-th one, or the i-th number.
struct Part {
  double contribution = 0;
  int64_t place = 0;
  bool is_number = false;
};

// What comes from features that stand for numbers is in shares.numbers.
std::vector<Part> PartsOf(const ExplainedRows& rows, int64_t row, const RowShares& shares) {
  std::vector<Part> parts;
  const SparseBuffer& sparse = rows.block.sparse;
  DT_CHECK(!HasTexts(rows.config) || rows.block.names.size() == sparse.ids.size(), rows.block.names.size());
  const bool is_sparse = sparse.count() > 0;
  const NumberFeatures& numbers = rows.batch_form.numbers;
  const auto at = static_cast<size_t>(row);
  const int64_t begin = is_sparse ? sparse.offsets[at] : 0;
  const int64_t end = is_sparse ? sparse.offsets[at + 1] : rows.block.inputs;
  size_t next = 0;
  for (int64_t i = begin; i < end; ++i) {
    const bool is_number =
        is_sparse && numbers.count > 0 && sparse.ids[static_cast<size_t>(i)] >= numbers.begin;
    if (!is_number) parts.push_back({shares.features[next++], i, false});
  }
  for (size_t i = 0; i < shares.numbers.size(); ++i) {
    parts.push_back({shares.numbers[i], static_cast<int64_t>(i), true});
  }
  return parts;
}

float ValueIn(const SparseBuffer& sparse, int64_t i) {
  return sparse.values.empty() ? 1 : sparse.values[static_cast<size_t>(i)];
}

// A number as it is in the row. Of its logarithm (data.numbers), a float32, it has 6 digits.
double NumberIn(const ExplainedRows& rows, int64_t row, int64_t number) {
  const SparseBuffer& sparse = rows.block.sparse;
  const uint64_t id = rows.batch_form.numbers.begin + static_cast<uint64_t>(number);
  double value = 0;
  for (int64_t i = sparse.offsets[static_cast<size_t>(row)]; i < sparse.offsets[static_cast<size_t>(row) + 1];
       ++i) {
    if (sparse.ids[static_cast<size_t>(i)] == id) value += static_cast<double>(ValueIn(sparse, i));
  }
  if (rows.config.data.numbers != NumberScale::kLog) return value;
  return std::stod(fmt::format("{:.6g}", std::copysign(std::expm1(std::abs(value)), value)));
}

Reason ReasonOf(const ExplainedRows& rows, int64_t row, const Part& part) {
  const RowBlock& block = rows.block;
  const auto place = static_cast<size_t>(part.place);
  if (part.is_number) {
    return {rows.number_names[place], NumberIn(rows, row, part.place), part.contribution};
  }
  if (block.sparse.count() > 0) {
    const bool named = HasTexts(rows.config);
    return {named ? block.names[place].name : FeatureName(rows.config, rows.form, block.sparse.ids[place]),
            ValueIn(block.sparse, part.place), part.contribution};
  }
  const size_t at = static_cast<size_t>(row * block.inputs) + place;
  return {FeatureName(rows.config, rows.form, place),
          block.bytes.empty() ? static_cast<double>(block.raw[at]) : block.bytes[at], part.contribution};
}

// Enough digits that a sum of some is right to 1e-6 of an output below 100. JSON has no infinity and no NaN.
std::string Digits(double value, bool json = false) {
  if (json && !std::isfinite(value)) return "null";
  return std::isnan(value) ? "nan" : fmt::format("{:.9g}", value);
}

// Returns as few digits as tell a float32, such as the rows have, from others.
std::string ValueDigits(double value) { return fmt::format("{}", static_cast<float>(value)); }

}  // namespace

Why FindReasons(const ExplainedRows& rows, int64_t row, const RowShares& shares, double output,
                int64_t count) {
  std::vector<Part> parts = PartsOf(rows, row, shares);
  parts.erase(
      std::remove_if(parts.begin(), parts.end(), [](const Part& part) { return part.contribution == 0; }),
      parts.end());
  const size_t told = std::min(parts.size(), static_cast<size_t>(count));
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::abs(a.contribution) > std::abs(b.contribution);
  });
  const std::vector<float>& offsets = rows.block.row_offsets;
  const double offset = offsets.empty() ? 0 : static_cast<double>(offsets[static_cast<size_t>(row)]);
  Why why{output, shares.bias, offset, output - shares.bias - offset, {}};
  for (size_t i = 0; i < told; ++i) {
    why.rest -= parts[i].contribution;
    why.reasons.push_back(ReasonOf(rows, row, parts[i]));
  }
  return why;
}

WhyText::WhyText(PredictionFormat format, int64_t count, bool offsets, const std::vector<std::string>& kept)
    : format_(format), count_(static_cast<size_t>(count)), offsets_(offsets), columns_{"output", "bias"} {
  if (offsets_) columns_.emplace_back("offset");
  columns_.emplace_back("rest");
  for (size_t i = 1; i <= count_; ++i) {
    for (const char* what : {"feature", "value", "contribution"}) {
      columns_.push_back(fmt::format("{}_{}", what, i));
    }
  }
  const std::vector<std::string> names =
      format == PredictionFormat::kCsv ? columns_ : std::vector<std::string>{"why"};
  for (const std::string& name : kept) {
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    throw UserError(
        "--keep {}: the predictions would have two columns of this name (--why). Rename it in the file.",
        Shown(name));
  }
}

void WhyText::AddToHeader(std::string* line) const {
  if (format_ == PredictionFormat::kJsonLines) return;
  line->pop_back();
  *line += fmt::format(",{}\n", fmt::join(columns_, ","));
}

void WhyText::AddToRow(const Why& why, std::string* line) const {
  line->pop_back();
  if (format_ == PredictionFormat::kJsonLines) {
    line->back() = ',';  // in place of the brace
    const std::string offset = offsets_ ? "\"offset\":" + Digits(why.offset, true) + "," : "";
    *line += fmt::format("\"why\":{{\"output\":{},\"bias\":{},{}\"rest\":{},\"features\":[",
                         Digits(why.output, true), Digits(why.bias, true), offset, Digits(why.rest, true));
    for (size_t i = 0; i < why.reasons.size(); ++i) {
      const Reason& each = why.reasons[i];
      *line +=
          fmt::format("{}{{\"feature\":{},\"value\":{},\"contribution\":{}}}", i == 0 ? "" : ",",
                      Json(each.feature).dump(), ValueDigits(each.value), Digits(each.contribution, true));
    }
    *line += "]}}\n";
    return;
  }
  *line += fmt::format(",{},{}", Digits(why.output), Digits(why.bias));
  if (offsets_) *line += "," + Digits(why.offset);
  *line += "," + Digits(why.rest);
  for (size_t i = 0; i < count_; ++i) {
    if (i >= why.reasons.size()) {
      *line += ",,,";
      continue;
    }
    const Reason& each = why.reasons[i];
    *line += fmt::format(",{},{},{}", CsvFieldText(each.feature), ValueDigits(each.value),
                         Digits(each.contribution));
  }
  *line += "\n";
}

}  // namespace dtrain
