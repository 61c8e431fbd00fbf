#include "trainer/model/contributions.h"

#include <algorithm>
#include <cmath>

#include "trainer/model/model.h"
#include "trainer/model/sparse_model.h"

namespace dtrain {

Contributions::Contributions(const ModelConfig& config, const Layout& layout)
    : kind_(config.kind), activation_(config.activation), embedding_(config.embedding), layout_(layout) {
  if (layout.variables.empty()) return;
  const size_t layers = HasLayers(config) ? config.hidden.size() + 1 : 1;
  for (size_t i = 1; i <= layers; ++i) {
    const LayerNames names = LayerNamesOf(config, i);
    const Variable& weights = layout.Find(names.weights);
    Level level{weights.rows, weights.offset, layout.Find(names.biases).offset, {}, {}, {}};
    level.sums.resize(static_cast<size_t>(weights.cols));
    level.zero_sums = level.gains = level.sums;
    levels_.push_back(std::move(level));
  }
}

void Contributions::Of(const float* parameters, const Batch& batch, int64_t row, int64_t output,
                       RowShares* shares) {
  shares->features.clear();
  shares->numbers.clear();
  layout_.table ? OfTable(parameters, batch, row, output, shares)
                : OfDense(parameters, batch, row, output, shares);
}

double Contributions::Activated(double sum) const {
  switch (activation_) {
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-sum));
    case Activation::kTanh:
      return std::tanh(sum);
    case Activation::kRelu:
      break;
  }
  return std::max(sum, 0.0);
}

// Where both sums are nearly the same the quotient would be all rounding; nothing comes through there, and
// any number will do for it.
double Contributions::Rescaled(double sum, double zero_sum) const {
  constexpr double kMinStep = 1e-9;
  const double step = sum - zero_sum;
  return std::abs(step) < kMinStep ? 0 : (Activated(sum) - Activated(zero_sum)) / step;
}

void Contributions::ComputeLayers(const float* parameters, const std::vector<Input>& inputs, int64_t output) {
  for (Level& level : levels_) {
    const float* const biases = parameters + level.biases;
    level.sums.assign(biases, biases + level.sums.size());
    level.zero_sums = level.sums;
  }
  Level& first = levels_.front();
  const auto width = static_cast<int64_t>(first.sums.size());
  for (const Input& input : inputs) {
    if (input.value == 0) continue;
    const float* const weights = parameters + first.weights + input.number * width;
    for (size_t i = 0; i < first.sums.size(); ++i) first.sums[i] += input.value * weights[i];
  }
  for (size_t at = 1; at < levels_.size(); ++at) {
    const Level& below = levels_[at - 1];
    Level& level = levels_[at];
    const float* weights = parameters + level.weights;
    for (size_t i = 0; i < below.sums.size(); ++i, weights += level.sums.size()) {
      const double value = Activated(below.sums[i]), zero = Activated(below.zero_sums[i]);
      for (size_t k = 0; k < level.sums.size(); ++k) {
        level.sums[k] += value * weights[k];
        level.zero_sums[k] += zero * weights[k];
      }
    }
  }
  std::fill(levels_.back().gains.begin(), levels_.back().gains.end(), 0.0);
  levels_.back().gains[static_cast<size_t>(output)] = 1;
  for (size_t at = levels_.size() - 1; at-- > 0;) {
    Level& level = levels_[at];
    for (size_t i = 0; i < level.sums.size(); ++i) {
      level.gains[i] =
          GainOf(parameters, at + 1, static_cast<int64_t>(i)) * Rescaled(level.sums[i], level.zero_sums[i]);
    }
  }
}

// What the output gains for each step of an input of the level.
double Contributions::GainOf(const float* parameters, size_t level, int64_t input) const {
  const std::vector<double>& gains = levels_[level].gains;
  const float* const weights =
      parameters + levels_[level].weights + input * static_cast<int64_t>(gains.size());
  double sum = 0;
  for (size_t i = 0; i < gains.size(); ++i) {
    if (gains[i] != 0) sum += weights[i] * gains[i];
  }
  return sum;
}

void Contributions::OfDense(const float* parameters, const Batch& batch, int64_t row, int64_t output,
                            RowShares* shares) {
  const SparseRows& sparse = batch.sparse;
  const bool is_sparse = sparse.offsets != nullptr;
  const int64_t first = is_sparse ? sparse.offsets[row] : 0;
  const int64_t count = is_sparse ? sparse.offsets[row + 1] - first : levels_.front().inputs;
  const auto value_of = [&](int64_t i) -> double {
    if (is_sparse) return ValueOf(sparse, first + i);
    if (batch.inputs != nullptr) return batch.inputs[row * batch.columns + i];
    return batch.bytes.table.row(batch.bytes.rows[row])[i] * (1.0 / 255);
  };
  std::vector<Input> inputs;
  for (int64_t i = 0; i < count; ++i) {
    inputs.push_back({is_sparse ? static_cast<int64_t>(sparse.ids[first + i]) : i, value_of(i)});
  }
  ComputeLayers(parameters, inputs, output);
  shares->bias = levels_.back().zero_sums[static_cast<size_t>(output)];
  for (const Input& input : inputs) {
    shares->features.push_back(input.value == 0 ? 0 : input.value * GainOf(parameters, 0, input.number));
  }
}

void Contributions::OfTable(const float* parameters, const Batch& batch, int64_t row, int64_t output,
                            RowShares* shares) {
  const SparseRows& of = batch.sparse;
  const float* const rows = parameters + layout_.size;
  const int64_t width = layout_.table->width();
  shares->bias = rows[of.bias * width + output];
  for (int64_t i = of.offsets[row]; i < of.offsets[row + 1]; ++i) {
    shares->features.push_back(static_cast<double>(ValueOf(of, i)) * rows[of.places[i] * width + output]);
  }
  if (kind_ == ModelKind::kFm) AddPairs(rows, of, row, shares);
  if (kind_ == ModelKind::kWideDeep) AddDeep(parameters, batch, row, shares);
}

// The sum over all features is (s^2 - sum of squares) / 2 for each factor, as the model has it.
void Contributions::AddPairs(const float* rows, const SparseRows& of, int64_t row, RowShares* shares) {
  const int64_t width = layout_.table->width(), begin = of.offsets[row], end = of.offsets[row + 1];
  for (int64_t f = 1; f < width; ++f) {
    const auto term_of = [&](int64_t i) {
      return static_cast<double>(ValueOf(of, i)) * rows[of.places[i] * width + f];
    };
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += term_of(i);
    for (int64_t i = begin; i < end; ++i) {
      const double term = term_of(i);
      shares->features[static_cast<size_t>(i - begin)] += 0.5 * term * (sum - term);
    }
  }
}

void Contributions::AddDeep(const float* parameters, const Batch& batch, int64_t row, RowShares* shares) {
  const SparseRows& of = batch.sparse;
  const float* const rows = parameters + layout_.size;
  const int64_t width = layout_.table->width(), begin = of.offsets[row], end = of.offsets[row + 1];
  const int64_t inputs = levels_.front().inputs, numbers = layout_.form.numbers.count;
  const auto first_of = [&](int64_t i) {
    return of.columns == nullptr ? 0 : static_cast<int64_t>(of.columns[i]) * embedding_;
  };
  std::vector<Input> values(static_cast<size_t>(inputs));
  for (int64_t i = 0; i < inputs; ++i) values[static_cast<size_t>(i)].number = i;
  for (int64_t i = begin; i < end; ++i) {
    const float* const embedding = rows + of.places[i] * width + 1;
    for (int64_t d = 0; d < embedding_; ++d) {
      values[static_cast<size_t>(first_of(i) + d)].value +=
          static_cast<double>(ValueOf(of, i)) * embedding[d];
    }
  }
  for (int64_t n = 0; n < numbers; ++n) {
    values[static_cast<size_t>(inputs - numbers + n)].value = batch.numbers[row * numbers + n];
  }
  ComputeLayers(parameters, values, 0);
  std::vector<double> gains;
  for (int64_t i = 0; i < inputs; ++i) gains.push_back(GainOf(parameters, 0, i));
  shares->bias += levels_.back().zero_sums[0];
  for (int64_t i = begin; i < end; ++i) {
    const float* const embedding = rows + of.places[i] * width + 1;
    double sum = 0;
    for (int64_t d = 0; d < embedding_; ++d) {
      sum += gains[static_cast<size_t>(first_of(i) + d)] * embedding[d];
    }
    shares->features[static_cast<size_t>(i - begin)] += sum * static_cast<double>(ValueOf(of, i));
  }
  for (auto n = static_cast<size_t>(inputs - numbers); n < gains.size(); ++n) {
    shares->numbers.push_back(gains[n] * values[n].value);
  }
}

}  // namespace dtrain
