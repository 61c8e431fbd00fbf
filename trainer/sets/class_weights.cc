#include "trainer/sets/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.h"
#include "trainer/batch/class_names.h"
#include "trainer/config/data_config.h"
#include "trainer/config/item_text.h"
#include "trainer/config/user_text.h"
#include "trainer/rows/label_rules.h"

namespace dtrain {
namespace {

std::vector<float> Balanced(const std::vector<double>& counts) {
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  const auto there = std::count_if(counts.begin(), counts.end(), [](double count) { return count > 0; });
  std::vector<float> weights;
  for (const double count : counts) {
    const double share = static_cast<double>(there) * count;
    weights.push_back(count == 0 ? 1 : static_cast<float>(all / share));
  }
  return weights;
}

// Returns the number of a class that is given by its name, or by its number where classes have no names.
size_t ClassOf(const std::string& name, const InputForm& form, int64_t classes) {
  if (const std::optional<int32_t> found = FindClass(form.classes, name)) return static_cast<size_t>(*found);
  const std::optional<int32_t> number = ClassNumber(name, classes);
  if (form.classes.empty() && number) return static_cast<size_t>(*number);
  throw UserError("data.class_weights = {}; no class of data.train has this name. The classes are {}.",
                  Quoted(Shown(name)),
                  !form.classes.empty() ? ListNames(form.classes, "and")
                  : classes == 2        ? "0 and 1"
                                        : fmt::format("0 to {}", classes - 1));
}

}  // namespace

double WeighRows(const DataSet& set, gpu::Span<const float> class_weights, int64_t rows, const RowsOut& out) {
  if (!set.weighted()) std::fill_n(out.weights, rows, 1.0f);
  const double sum = std::accumulate(out.weights, out.weights + rows, 0.0);
  MultiplyWeights(class_weights, out.labels, rows, out.weights);
  return sum;
}

std::vector<double> WeighClasses(const DataSet& train, int64_t held_out) {
  if (!train.weighted()) {
    const std::vector<int64_t> counts = CountClasses(train, held_out).trained;
    return {counts.begin(), counts.end()};
  }
  std::vector<double> weights(static_cast<size_t>(*train.classes()));
  VisitRows(train, held_out, *train.rows(), false, [&](const RowChunk& chunk) {
    for (int64_t i = 0; i < chunk.count; ++i)
      weights[static_cast<size_t>(chunk.labels[i])] += chunk.weights[i];
  });
  return weights;
}

std::vector<int64_t> CountClasses(const DataSet& set, int64_t begin, int64_t end) {
  std::vector<int64_t> counts;
  VisitRows(set, begin, end, false, [&](const RowChunk& chunk) {
    for (int64_t i = 0; i < chunk.count; ++i) CountClass(chunk.labels[i], &counts);
  });
  return counts;
}

ClassCounts CountClasses(const DataSet& train, int64_t held_out) {
  const int64_t rows = *train.rows();
  held_out = std::min(held_out, rows);
  const std::vector<int64_t>* const known = train.held_out_class_rows();
  ClassCounts counts{known != nullptr ? *known : CountClasses(train, 0, held_out), {}};
  if (train.class_rows() == nullptr) {
    counts.trained = CountClasses(train, held_out, rows);
    return counts;
  }
  counts.trained = *train.class_rows();
  counts.trained.resize(std::max(counts.trained.size(), counts.held_out.size()));
  for (size_t label = 0; label < counts.held_out.size(); ++label) {
    counts.trained[label] -= counts.held_out[label];
  }
  while (!counts.trained.empty() && counts.trained.back() == 0) counts.trained.pop_back();
  return counts;
}

std::vector<float> ClassWeightsOf(const DataConfig& data, const InputForm& form, int64_t classes,
                                  const std::function<std::vector<double>()>& count) {
  if (data.class_weights.empty()) return {};
  if (data.class_weights.front() == "balanced") {
    std::vector<double> counts = count();
    counts.resize(static_cast<size_t>(classes));
    return Balanced(counts);
  }
  std::vector<float> weights(static_cast<size_t>(classes), 1);
  for (const std::string& item : data.class_weights) {
    const auto [name, weight] = *ParseClassWeight(item);
    weights[ClassOf(name, form, classes)] = static_cast<float>(weight);
  }
  return weights;
}

}  // namespace dtrain
