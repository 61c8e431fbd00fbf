// How many rows each class has, and the weights of classes (data.class_weights). Thread: any; free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// Counts a row of that class.
inline void CountClass(int32_t label, std::vector<int64_t>* class_rows) {
  const auto number = static_cast<size_t>(label);
  if (number >= class_rows->size()) class_rows->resize(number + 1);
  ++(*class_rows)[number];
}

// Multiplies the weights of rows by those of their classes; empty: these count 1.
inline void MultiplyWeights(gpu::Span<const float> class_weights, const int32_t* labels, int64_t rows,
                            float* weights) {
  if (class_weights.size == 0) return;
  for (int64_t i = 0; i < rows; ++i) weights[i] *= class_weights[labels[i]];
}

// Makes `out.weights` of rows that were read what they count in training. Returns what their mean divides by,
// the sum of data.weight.
double WeighRows(const DataSet& set, gpu::Span<const float> class_weights, int64_t rows, const RowsOut& out);

// ClassCounts: the rows of each class, by number, up to the last that has any.
struct ClassCounts {
  std::vector<int64_t> held_out;  // of the first rows
  std::vector<int64_t> trained;   // of all others
};
ClassCounts CountClasses(const DataSet& train, int64_t held_out);
// Returns those of the rows from `begin` to `end`.
std::vector<int64_t> CountClasses(const DataSet& set, int64_t begin, int64_t end);
// Returns how much the rows of each class weigh that are not held out.
std::vector<double> WeighClasses(const DataSet& train, int64_t held_out);

// Returns a weight for each of so many classes, by number; empty: all count 1. [balanced] calls `count` for
// how much the rows of each weigh: a class weighs rows / (classes * rows of the class), as scikit-learn has
// it, and one without rows 1. Throws UserError for a class that is not there.
std::vector<float> ClassWeightsOf(const DataConfig& data, const InputForm& form, int64_t classes,
                                  const std::function<std::vector<double>()>& count);

}  // namespace dtrain
