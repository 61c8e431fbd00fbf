// Rows with few features of many, in libsvm's form or Vowpal Wabbit's:
//   1 3:1 40:0.375 ...          libsvm: label, and features from 1 in their order
//   1 | 2 39:0.375 ...          vw: the same with numbers as names, which are then from 0
// Feature j of a row, of `features`, is number j + (k - 1) * features from 0, where k is from Zipf's law, so
// that small numbers are frequent and none comes twice in a row. Each fourth has a value of 1/8 to 1, the
// others 1.
//   p = 1 / (1 + exp(-z)), z = -1 + sum of weight(number) * value / sqrt(features)
//   label = 1 with probability p, else -1
// A logistic model with a weight for each feature so reaches the truth.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "trainer/synth/planted.h"
#include "trainer/synth/synth_table.h"

namespace dtrain {
namespace {

constexpr double kBias = -1;

class SparseTable : public SynthTable {
 public:
  SparseTable(uint64_t seed, SparseForm form, int64_t features, int64_t width)
      : form_(form),
        features_(static_cast<uint64_t>(features)),
        rows_(CounterRandom(seed).Stream("sparse rows")),
        weights_(CounterRandom(seed).Stream("sparse weights")),
        zipf_(static_cast<uint64_t>(width) / features_),
        spread_(1 / std::sqrt(static_cast<double>(features))),
        row_(features_) {
    DT_CHECK(features >= 1 && width >= features, features, width);
  }

  std::string Header() const override { return ""; }

  void Append(int64_t begin, int64_t end, std::string* text) override {
    for (int64_t row = begin; row < end; ++row) AppendRow(static_cast<uint64_t>(row), text);
  }

  void KeepTruth() override { score_ = std::make_unique<TrueScore>(); }
  std::string Truth() const override { return score_ == nullptr ? "" : score_->Text(); }

 private:
  struct Feature {
    uint64_t number;  // from 0
    uint32_t eighths;
  };

  void AppendRow(uint64_t row, std::string* text) {
    const uint64_t draw = row * (features_ + 1);
    double logit = kBias;
    for (uint64_t j = 0; j < features_; ++j) {
      const uint64_t bits = rows_.Bits(draw + j);
      const uint64_t number = j + (zipf_.Draw(bits) - 1) * features_;
      const uint32_t eighths = j % 4 == 3 ? 1 + static_cast<uint32_t>(Mix64(bits) & 7) : 8;
      row_[j] = {number, eighths};
      logit += spread_ * SumOfBytes(static_cast<uint32_t>(weights_.Bits(number))) * eighths / 8;
    }
    std::sort(row_.begin(), row_.end(),
              [](const Feature& a, const Feature& b) { return a.number < b.number; });
    const bool positive = rows_.Uniform(draw + features_) * (1 + std::exp(-logit)) < 1;
    if (score_ != nullptr) score_->Add(logit, positive);
    *text += positive ? "1" : "-1";
    if (form_ == SparseForm::kVw) *text += " |";
    for (const Feature& feature : row_) AppendFeature(feature, text);
    *text += '\n';
  }

  void AppendFeature(const Feature& feature, std::string* text) const {
    static constexpr const char* kEighths[] = {"",      "0.125", "0.25",  "0.375", "0.5",
                                               "0.625", "0.75",  "0.875", "1"};
    const bool libsvm = form_ == SparseForm::kLibsvm;
    char digits[24] = {' '};
    const char* const end =
        std::to_chars(digits + 1, digits + sizeof digits, feature.number + (libsvm ? 1 : 0)).ptr;
    text->append(digits, static_cast<size_t>(end - digits));
    if (!libsvm && feature.eighths == 8) return;
    *text += ':';
    *text += kEighths[feature.eighths];
  }

  const SparseForm form_;
  const uint64_t features_;
  const CounterRandom rows_, weights_;
  const Zipf zipf_;
  const double spread_;
  std::vector<Feature> row_;
  std::unique_ptr<TrueScore> score_;
};

}  // namespace

std::unique_ptr<SynthTable> NewSparseTable(uint64_t seed, SparseForm form, int64_t features, int64_t width) {
  return std::make_unique<SparseTable>(seed, form, features, width);
}

}  // namespace dtrain
