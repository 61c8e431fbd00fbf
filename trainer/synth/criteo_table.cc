// Clicks on advertisements in the form of Criteo's files: a label, 13 whole numbers and 26 categories as
// eight hexadecimal digits, with values missing as often as in the Kaggle data of 2014, whose numbers of
// categories these are too.
//   a number of column i is k - 1 and a category is the k-th, where k is from Zipf's law: P(k) ~ 1/k, k <= N
//   p = 1 / (1 + exp(-z)), z = bias + sum of weight(i) * value / scale(i), or weight(i) of a missing value,
//       + sum of weight(column, k) of the categories; a missing category adds nothing
//   label = 1 with probability p
// A logistic model with one weight for each category so reaches the truth. All draws are whole-number
// arithmetic on CounterRandom, and weights are sums of bytes, so every machine makes the same rows but for
// the last bit of exp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "trainer/synth/planted.h"
#include "trainer/synth/synth_table.h"

namespace dtrain {
namespace {

constexpr size_t kNumbers = 13, kCategories = 26;
constexpr size_t kColumns = kNumbers + kCategories;
constexpr uint64_t kDrawsPerRow = 64;                          // one for each column, one for the label
constexpr double kBias = -1.35;                                // a fifth to a third of the labels are 1
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

class CriteoTable : public SynthTable {
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

  void Append(int64_t begin, int64_t end, std::string* text) override {
    for (int64_t row = begin; row < end; ++row) {
      const size_t size = text->size();
      text->resize(size + kMaxRowBytes);
      const char* const last = AppendRow(static_cast<uint64_t>(row), text->data() + size);
      text->resize(static_cast<size_t>(last - text->data()));
    }
  }

  void KeepTruth() override { score_ = std::make_unique<TrueScore>(); }
  std::string Truth() const override { return score_ == nullptr ? "" : score_->Text(); }

 private:
  // Writes the row and returns its end. The label is the first field and depends on all others.
  char* AppendRow(uint64_t row, char* out) {
    char* const label = out++;
    double logit = kBias;
    const uint64_t draw = row * kDrawsPerRow;
    for (size_t i = 0; i < kNumbers; ++i) {
      *out++ = delimiter_;
      out = AppendNumber(i, rows_.Bits(draw + i), out, &logit);
    }
    for (size_t i = kNumbers; i < kColumns; ++i) {
      *out++ = delimiter_;
      out = AppendCategory(i, rows_.Bits(draw + i), out, &logit);
    }
    const bool positive = rows_.Uniform(draw + kColumns) * (1 + std::exp(-logit)) < 1;
    if (score_ != nullptr) score_->Add(logit, positive);
    *label = positive ? '1' : '0';
    *out++ = '\n';
    return out;
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
  std::unique_ptr<TrueScore> score_;
};

}  // namespace

std::unique_ptr<SynthTable> NewCriteoTable(uint64_t seed, bool header) {
  return std::make_unique<CriteoTable>(seed, header);
}

}  // namespace dtrain
