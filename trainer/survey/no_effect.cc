// What of the data teaches nothing (data_warnings.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/user_text.h"
#include "trainer/order/held_out.h"
#include "trainer/survey/data_warnings.h"

namespace dtrain {
namespace {

// Returns for each class, or for all targets, whether any of the rows [begin, end) has a weight above 0.
// `class_weights` count too. It reads no further than it must, which is not far in most data.
std::vector<bool> HaveWeight(const DataSet& set, int64_t begin, int64_t end, size_t classes,
                             gpu::Span<const float> class_weights) {
  constexpr size_t kChunk = 1024;
  std::vector<bool> have(std::max<size_t>(classes, 1));
  std::vector<int64_t> rows, memory;
  std::vector<int32_t> labels(kChunk);
  while (begin < end && std::count(have.begin(), have.end(), false) > 0) {
    rows.resize(std::min(kChunk, static_cast<size_t>(end - begin)));
    std::iota(rows.begin(), rows.end(), begin);
    begin += static_cast<int64_t>(rows.size());
    std::vector<float> weights(kChunk, 1);
    RowsOut out;
    out.labels = labels.data();
    out.weights = weights.data();
    try {
      set.Read(set.FileRows(rows, &memory), out);
    } catch (const UserError&) {  // a row that cannot be read is told by who needs it, such as a step
      return std::vector<bool>(have.size(), true);
    }
    MultiplyWeights(class_weights, labels.data(), static_cast<int64_t>(rows.size()), weights.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t label = classes == 0 ? 0 : static_cast<size_t>(labels[i]);
      if (weights[i] > 0 && label < have.size()) have[label] = true;
    }
  }
  return have;
}

}  // namespace

std::string EmptyColumnsText(const LoadedData& loaded) {
  const gpu::MatrixView<const float> rows = loaded.train->floats();
  std::vector<std::string> names;
  int64_t feature = 0;
  const auto differs = [&] {
    for (int64_t row = 1; row < rows.rows; ++row) {
      if (rows.row(row)[feature] != rows.row(0)[feature]) return true;
    }
    return false;
  };
  for (const InputColumn& column : loaded.form.columns) {
    const bool no_text = column.features() == 1 && column.categories == std::vector<std::string>{""};
    const bool is_empty = column.is_category ? no_text : column.fill && rows.rows > 1 && !differs();
    if (is_empty) names.push_back(column.name.empty() ? fmt::format("{}", column.column) : column.name);
    feature += column.features();
  }
  if (names.empty()) return "";
  return fmt::format(
      "column{} {}: no value in any row, or the same in all of them, and nothing can be learned from that. "
      "Correct the file, or name {} in data.ignore.",
      names.size() == 1 ? "" : "s", ListNames(names, "and"), names.size() == 1 ? "it" : "them");
}

std::string WeightlessText(const DataConfig& data, const LoadedData& loaded, const ClassCounts& counts) {
  const DataSet& train = *loaded.train;
  const gpu::Span<const float> class_weights = train.class_weights();
  if (!train.rows() || (!train.weighted() && class_weights.size == 0)) return "";
  const std::string key = train.weighted() ? "data.weight: " + data.weight : "data.class_weights";
  const auto all_are_0 = [&](const char* rows, const char* so) {
    return fmt::format(
        "all rows that are {} have the weight 0 ({}), and {}. Correct the column, or set {} to null.", rows,
        key, so, train.weighted() ? "data.weight" : "data.class_weights");
  };
  const int64_t held_out = std::min(HeldOutRows(data, train.rows()), *train.rows());
  const std::vector<bool> have =
      HaveWeight(train, held_out, *train.rows(), counts.trained.size(), class_weights);
  const auto weighs = [](const std::vector<bool>& any) {
    return std::count(any.begin(), any.end(), true) > 0;
  };
  if (held_out < *train.rows() && !weighs(have)) return all_are_0("trained on", "nothing can be learned");
  std::vector<std::string> classes;
  for (size_t label = 0; label < counts.trained.size(); ++label) {
    if (counts.trained[label] == 0 || have[label]) continue;
    const std::vector<std::string>& names = loaded.form.classes;
    classes.push_back(label < names.size() ? names[label] : fmt::format("{}", label));
  }
  if (!classes.empty()) {
    return fmt::format(
        "all rows of class {} that are trained on have the weight 0 ({}): never learned. Give them a weight, "
        "or leave the class out.",
        ListNames(classes, "and of class"), key);
  }
  if (!train.weighted()) return "";  // classes weigh nothing in evaluation
  if (held_out > 0 && !weighs(HaveWeight(train, 0, held_out, 0, {}))) {
    return all_are_0("held out", "no figure can be measured on them");
  }
  if (loaded.test == nullptr || !loaded.test->rows() || *loaded.test->rows() == 0) return "";
  if (weighs(HaveWeight(*loaded.test, 0, *loaded.test->rows(), 0, {}))) return "";
  return all_are_0("in data.test", "no figure can be measured on them");
}

namespace {

// By their bits, which are in the order of the numbers: all of the rows are looked at before the first step.
float LargestMagnitude(const float* values, int64_t count) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, values + i, sizeof bits);
    largest = std::max(largest, bits & 0x7fffffff);
  }
  float magnitude = 0;
  std::memcpy(&magnitude, &largest, sizeof magnitude);
  return magnitude;
}

}  // namespace

std::string FeatureSizeText(const LoadedData& loaded) {
  constexpr float kHuge = 1e18f;        // the largest float32 is 3e38
  constexpr float kTiny = 1e-12f;       // updates of float32 weights by such features are lost or 0
  constexpr int64_t kMaxRows = 10'000;  // of those that are not in memory as floats
  const DataSet& train = *loaded.train;
  if (!train.rows()) return "";
  int64_t feature = -1;
  float value = 0, largest = 0;
  const auto look = [&](int64_t number, float x) {
    largest = std::max(largest, std::fabs(x));
    if (feature >= 0 || !(std::fabs(x) > kHuge)) return;
    feature = number;
    value = x;
  };
  if (const gpu::MatrixView<const float> rows = train.floats(); rows.data != nullptr && !train.sparse()) {
    largest = LargestMagnitude(rows.data, rows.size());
    for (int64_t i = 0; largest > kHuge && feature < 0; ++i) look(i % rows.cols, rows.data[i]);
  } else if (train.bytes().data == nullptr) {
    const auto visit = [&](const RowChunk& chunk) {
      if (chunk.sparse != nullptr) {
        for (size_t i = 0; i < chunk.sparse->values.size(); ++i) {
          look(static_cast<int64_t>(chunk.sparse->ids[i]), chunk.sparse->values[i]);
        }
      } else {
        for (int64_t i = 0; i < chunk.count * train.inputs(); ++i) look(i % train.inputs(), chunk.inputs[i]);
      }
    };
    try {
      VisitRows(train, 0, std::min(kMaxRows, *train.rows()), true, visit);
    } catch (const UserError&) {  // a row that cannot be read is told by who needs it, such as a step
    }
  }
  if (feature < 0 && largest > 0 && largest < kTiny) {
    return fmt::format(
        "all features are at most {:.6g}, and too small to be learned from. {}.", largest,
        train.sparse() ? "Multiply their values" : "Set data.scale to standard, or multiply the columns");
  }
  if (feature < 0) return "";
  const std::string title =
      train.sparse() ? fmt::format("{}, from 0,", feature) : Shown(FeatureTitle(loaded.form, feature));
  return fmt::format(
      "feature {} is as large as {:.6g}, whose square is too large for float32: its weight may never move, "
      "or the run diverge. {}.",
      title, value,
      train.sparse() ? "Divide its values" : "Set data.scale to standard, or divide the column");
}

}  // namespace dtrain
