// Tables with a planted logistic model, whose labels are drawn with the probabilities that it gives: clicks
// in the form of Criteo's files, and sparse rows. A logistic model with a weight for each feature so reaches
// the truth. All draws are whole-number arithmetic on CounterRandom, and weights are sums of bytes, so every
// machine makes the same rows but for the last bit of exp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "trainer/synth/synth_table.h"

namespace dtrain {
namespace {

// Returns a roughly normal value with mean 0 and deviation 1: the sum of four bytes of `bits`.
double SumOfBytes(uint32_t bits) {
  const uint32_t sum = (bits & 0xff) + (bits >> 8 & 0xff) + (bits >> 16 & 0xff) + (bits >> 24);
  constexpr double kDeviation = 147.8;  // 2 * sqrt((256^2 - 1) / 12)
  return (static_cast<double>(sum) - 510) / kDeviation;
}

// Zipf's law by rejection (after Devroye, "Non-uniform random variate generation", 1986): the numbers from
// 2^j to 2^(j+1) - 1 are together about as likely for every j, so j is uniform; a number k of them is then
// uniform too and is kept with probability 2^j / k, which is at least a half.
class Zipf {
 public:
  explicit Zipf(uint64_t values) : values_(values) {
    while (values >> powers_ > 0) ++powers_;
  }
  // Returns k, 1 to `values`, with P(k) ~ 1/k.
  uint64_t Draw(uint64_t bits) const {
    constexpr uint64_t kLow = 0xffffff;
    while (true) {
      const uint32_t power = static_cast<uint32_t>((bits >> 48) * powers_ >> 16);
      const uint64_t place = powers_ <= 24 ? bits >> 24 & kLow : Mix64(bits ^ 0x2545f4914f6cdd1dull);
      const uint64_t k = (uint64_t{1} << power) + (place & ((uint64_t{1} << power) - 1));
      if (k <= values_ && (bits & kLow) * k >> 24 < uint64_t{1} << power) return k;
      bits = Mix64(bits + 0x9e3779b97f4a7c15ull);
    }
  }

 private:
  uint64_t values_;  // at most 2^40
  uint32_t powers_ = 0;
};

// TrueScore: the log loss and the AUC of the true probabilities, from counts of rows by logit.
class TrueScore {
 public:
  void Add(double logit, bool positive) {
    const double cell = std::min(std::max((logit + kRange) * (kCells / (2 * kRange)), 0.0), kCells - 1.0);
    ++counts_[positive ? 1 : 0][static_cast<size_t>(cell)];
    loss_ += std::log1p(std::exp(positive ? -logit : logit));
    ++rows_;
    positives_ += positive ? 1 : 0;
  }
  std::string Text() const {
    double below = 0, pairs = 0;
    for (size_t cell = 0; cell < kCells; ++cell) {
      const double negative = static_cast<double>(counts_[0][cell]);
      pairs += static_cast<double>(counts_[1][cell]) * (below + negative / 2);
      below += negative;
    }
    const double rows = static_cast<double>(rows_), ones = static_cast<double>(positives_);
    if (rows_ == 0) return "no rows";
    const std::string area =
        ones > 0 && below > 0 ? fmt::format("{:.6f}", pairs / ones / below) : "undefined";
    return fmt::format(
        "{} rows, {:.4f} of them with label 1; the true probabilities have log loss {:.6f} and AUC {}", rows_,
        ones / rows, loss_ / rows, area);
  }

 private:
  static constexpr size_t kCells = 1 << 16;
  static constexpr double kRange = 16;  // logits beyond are counted at its ends
  std::array<std::vector<int64_t>, 2> counts_{std::vector<int64_t>(kCells), std::vector<int64_t>(kCells)};
  double loss_ = 0;
  int64_t rows_ = 0, positives_ = 0;
};

// A table whose labels have known probabilities, and their score.
class PlantedTable : public SynthTable {
 public:
  void Append(int64_t begin, int64_t end, std::string* text) override {
    for (int64_t row = begin; row < end; ++row) AppendRow(static_cast<uint64_t>(row), text);
  }
  void KeepTruth() override { score_ = std::make_unique<TrueScore>(); }
  std::string Truth() const override { return score_ == nullptr ? "" : score_->Text(); }

 protected:
  virtual void AppendRow(uint64_t row, std::string* text) = 0;
  // Whether a row with this logit has label 1. `uniform`: its draw.
  bool IsPositive(double logit, double uniform) {
    const bool positive = uniform * (1 + std::exp(-logit)) < 1;
    if (score_ != nullptr) score_->Add(logit, positive);
    return positive;
  }

 private:
  std::unique_ptr<TrueScore> score_;
};

// Clicks on advertisements in the form of Criteo's files: a label, 13 whole numbers and 26 categories as
// eight hexadecimal digits, with values missing as often as in the Kaggle data of 2014, whose numbers of
// categories these are too.
//   a number of column i is k - 1 and a category is the k-th, where k is from Zipf's law: P(k) ~ 1/k, k <= N
//   p = 1 / (1 + exp(-z)), z = bias + sum of weight(i) * value / scale(i), or weight(i) of a missing value,
//       + sum of weight(column, k) of the categories; a missing category adds nothing
//   label = 1 with probability p
constexpr size_t kNumbers = 13, kCategories = 26;
constexpr size_t kColumns = kNumbers + kCategories;
constexpr uint64_t kDrawsPerRow = 64;                          // one for each column, one for the label
constexpr double kCriteoBias = -1.35;                          // a fifth to a third of the labels are 1
constexpr double kNumberSpread = 0.25, kCategorySpread = 0.3;  // standard deviations of weights
constexpr int64_t kMaxRowBytes = 1 + kNumbers * 12 + kCategories * 9 + 1;

struct ColumnRule {
  uint32_t values;   // N of Zipf's law
  uint32_t missing;  // in 10,000
};
constexpr std::array<ColumnRule, kColumns> kRules = {{
    // I1 to I13
    {2000, 4540},
    {16000, 0},
    {65000, 2150},
    {900, 2170},
    {100000, 260},
    {60000, 2240},
    {30000, 430},
    {5000, 5},
    {20000, 430},
    {10, 4540},
    {200, 430},
    {2000, 7650},
    {7000, 2170},
    // C1 to C26
    {1460, 0},
    {583, 0},
    {10131227, 340},
    {2202608, 340},
    {305, 0},
    {24, 1210},
    {12517, 0},
    {633, 0},
    {3, 0},
    {93145, 0},
    {5683, 0},
    {8351593, 340},
    {3194, 0},
    {27, 0},
    {14992, 0},
    {5461306, 340},
    {10, 0},
    {5652, 0},
    {2173, 4400},
    {4, 4400},
    {7046547, 340},
    {18, 7620},
    {15, 0},
    {286181, 340},
    {105, 4400},
    {142572, 4400},
}};

char* AppendHex(uint32_t value, char* out) {
  for (int shift = 28; shift >= 0; shift -= 4) *out++ = "0123456789abcdef"[value >> shift & 15];
  return out;
}

class CriteoTable : public PlantedTable {
 public:
  CriteoTable(uint64_t seed, bool header)
      : header_(header),
        delimiter_(header ? ',' : '\t'),
        rows_(CounterRandom(seed).Stream("criteo rows")),
        ids_(CounterRandom(seed).Stream("criteo categories")) {
    const CounterRandom weights = CounterRandom(seed).Stream("criteo numbers");
    for (size_t i = 0; i < kColumns; ++i) zipfs_.emplace_back(kRules[i].values);
    for (size_t i = 0; i < kNumbers; ++i) {
      const uint64_t bits = weights.Bits(i);
      number_weights_[i] = kNumberSpread * SumOfBytes(static_cast<uint32_t>(bits)) * 4 / kRules[i].values;
      missing_weights_[i] = kNumberSpread * SumOfBytes(static_cast<uint32_t>(bits >> 32));
    }
  }

  std::string Header() const override {
    if (!header_) return "";
    std::string names = "label";
    for (size_t i = 1; i <= kNumbers; ++i) names += fmt::format(",I{}", i);
    for (size_t i = 1; i <= kCategories; ++i) names += fmt::format(",C{}", i);
    return names + "\n";
  }

 private:
  // The label is the first field and depends on all others.
  void AppendRow(uint64_t row, std::string* text) override {
    const size_t size = text->size();
    text->resize(size + kMaxRowBytes);
    char* out = text->data() + size + 1;
    double logit = kCriteoBias;
    const uint64_t draw = row * kDrawsPerRow;
    for (size_t i = 0; i < kNumbers; ++i) {
      *out++ = delimiter_;
      out = AppendNumber(i, rows_.Bits(draw + i), out, &logit);
    }
    for (size_t i = kNumbers; i < kColumns; ++i) {
      *out++ = delimiter_;
      out = AppendCategory(i, rows_.Bits(draw + i), out, &logit);
    }
    *out++ = '\n';
    (*text)[size] = IsPositive(logit, rows_.Uniform(draw + kColumns)) ? '1' : '0';
    text->resize(static_cast<size_t>(out - text->data()));
  }

  static bool IsMissing(size_t column, uint64_t bits) {
    return (Mix64(bits ^ 0x2545f4914f6cdd1dull) >> 32) * 10000 >> 32 < kRules[column].missing;
  }

  char* AppendNumber(size_t column, uint64_t bits, char* out, double* logit) const {
    if (IsMissing(column, bits)) {
      *logit += missing_weights_[column];
      return out;
    }
    const int64_t value = static_cast<int64_t>(zipfs_[column].Draw(bits)) - 1;
    *logit += number_weights_[column] * static_cast<double>(value);
    return std::to_chars(out, out + 12, value).ptr;
  }

  char* AppendCategory(size_t column, uint64_t bits, char* out, double* logit) const {
    if (IsMissing(column, bits)) return out;
    const uint64_t id = ids_.Bits(static_cast<uint64_t>(column) << 32 | zipfs_[column].Draw(bits));
    *logit += kCategorySpread * SumOfBytes(static_cast<uint32_t>(id >> 32));
    return AppendHex(static_cast<uint32_t>(id), out);
  }

  const bool header_;
  const char delimiter_;
  const CounterRandom rows_, ids_;
  std::vector<Zipf> zipfs_;
  std::array<double, kNumbers> number_weights_{}, missing_weights_{};
};

constexpr double kSparseBias = -1;

// Rows with few features of many, in libsvm's form or Vowpal Wabbit's:
//   1 3:1 40:0.375 ...          libsvm: label, and features from 1 in their order
//   1 | 2 39:0.375 ...          vw: the same with numbers as names, which are then from 0
// Feature j of a row, of `features`, is number j + (k - 1) * features from 0, where k is from Zipf's law, so
// that small numbers are frequent and none comes twice in a row. Each fourth has a value of 1/8 to 1, the
// others 1.
//   p = 1 / (1 + exp(-z)), z = -1 + sum of weight(number) * value / sqrt(features)
//   label = 1 with probability p, else -1
class SparseTable : public PlantedTable {
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

 private:
  struct Feature {
    uint64_t number;  // from 0
    uint32_t eighths;
  };

  void AppendRow(uint64_t row, std::string* text) override {
    const uint64_t draw = row * (features_ + 1);
    double logit = kSparseBias;
    for (uint64_t j = 0; j < features_; ++j) {
      const uint64_t bits = rows_.Bits(draw + j);
      const uint64_t number = j + (zipf_.Draw(bits) - 1) * features_;
      const uint32_t eighths = j % 4 == 3 ? 1 + static_cast<uint32_t>(Mix64(bits) & 7) : 8;
      row_[j] = {number, eighths};
      logit += spread_ * SumOfBytes(static_cast<uint32_t>(weights_.Bits(number))) * eighths / 8;
    }
    std::sort(row_.begin(), row_.end(),
              [](const Feature& a, const Feature& b) { return a.number < b.number; });
    *text += IsPositive(logit, rows_.Uniform(draw + features_)) ? "1" : "-1";
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
};

}  // namespace

std::unique_ptr<SynthTable> NewCriteoTable(uint64_t seed, bool header) {
  return std::make_unique<CriteoTable>(seed, header);
}

std::unique_ptr<SynthTable> NewSparseTable(uint64_t seed, SparseForm form, int64_t features, int64_t width) {
  return std::make_unique<SparseTable>(seed, form, features, width);
}

}  // namespace dtrain
