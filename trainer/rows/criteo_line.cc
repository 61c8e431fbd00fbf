#include "trainer/rows/criteo_line.h"

#include <emmintrin.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "trainer/config/data_config.h"
#include "trainer/config/user_text.h"
#include "trainer/input/csv_field.h"
#include "trainer/rows/hashed_feature.h"

namespace dtrain {
namespace {

constexpr size_t kNumbers = static_cast<size_t>(kCriteoNumbers),
                 kCategories = static_cast<size_t>(kCriteoCategories), kFeatures = kNumbers + kCategories;
constexpr int64_t kTabled = 4096;  // numbers below have their features in tables; most are small

std::string BucketText(int64_t number) {
  if (number <= 2) return fmt::format("{}", number);
  const double log = std::log(static_cast<double>(number));
  return fmt::format(">{}", static_cast<int64_t>(log * log));
}

class CriteoParser : public LineParser {
 public:
  CriteoParser(const DataConfig& data, const LineRules& rules)
      : mask_(LowBits(*HashBits(data))),
        end_(rules.inputs ? static_cast<uint64_t>(*rules.inputs) : UINT64_MAX),
        labels_(rules.labels),
        names_(rules.names),
        width_(rules.labels ? kFeatures + 1 : 0),
        weight_at_(CriteoColumn(data.weight)) {
    const int64_t bits = *HashBits(data);
    for (size_t i = 1; i <= kNumbers; ++i) columns_.emplace_back(fmt::format("I{}", i), bits);
    for (int64_t i = 0; i < kCriteoCategories; ++i) {
      columns_.emplace_back(fmt::format("C{}", i + 1), bits, data.by_column ? FirstOfColumn(i, bits) : 0);
    }
    if (data.by_column) {
      scale_ = data.numbers;
      first_number_ = FirstOfColumn(kCriteoCategories, bits);
      for (int64_t number = 0; number < kTabled; ++number) {
        scaled_.push_back(ScaledNumber(static_cast<float>(number), data.numbers));
      }
      return;
    }
    // Texts come in order, each for a run of numbers.
    std::string text;
    for (int64_t number = 0; number < kTabled; ++number) {
      if (std::string next = BucketText(number); next != text) {
        text = std::move(next);
        for (size_t i = 0; i < kNumbers; ++i) features_[i].push_back(columns_[i].NumberOf(text));
      }
      places_[static_cast<size_t>(number)] = static_cast<uint8_t>(features_[0].size() - 1);
    }
  }

  bool Parse(std::string_view line, SparseLine* row, std::optional<LineFault>* fault) override {
    row->Clear();
    if (!HasRow(line)) return false;
    const auto fail = [&](size_t at, std::string rule) {
      fault->emplace(LineFault{at, std::move(rule)});
      return false;
    };
    const size_t count = FindFields(line);
    if (width_ == 0 && (count == kFeatures + 1 || (count == kFeatures && !Fits(line, true)))) width_ = count;
    if (count != width_) {
      const size_t wanted = width_ == 0 ? kFeatures + 1 : width_;
      return fail(count < wanted ? line.size() : ends_[wanted - 1] + 1, FieldsRule(count, wanted, line));
    }
    if (count > kFeatures) row->label = line.substr(0, ends_[0]);
    row->ids.resize(kFeatures);
    row->values.assign(kFeatures, 1);
    const size_t first = count - kFeatures;  // field of I1
    size_t count_of_row = 0;
    for (size_t i = 0; i < kFeatures; ++i) {
      const size_t begin = first + i == 0 ? 0 : ends_[first + i - 1] + 1;
      const std::string_view text = line.substr(begin, ends_[first + i] - begin);
      if (i == weight_at_) {
        if (labels_ && !ReadWeight(text, &row->weight)) {
          return fail(begin,
                      fmt::format("the weight = {}; must be a finite number >= 0 (data.weight). Correct "
                                  "it, or remove the row.",
                                  Shown(std::string(text))));
        }
        continue;
      }
      uint64_t* const id = &row->ids[count_of_row];
      float* const value = &row->values[count_of_row++];
      if (i >= kNumbers || (text.empty() && !by_column())) {
        *id = columns_[i].NumberOf(text);
      } else if (by_column() ? !NumberItself(i, text, id, value) : !NumberedFeature(i, text, id)) {
        return fail(begin, fmt::format("I{} = {}; must be a whole number. Correct it, or remove the row.",
                                       i + 1, Shown(std::string(text))));
      }
      if (*id >= end_) return fail(begin, BeyondInputsRule(*id, end_, mask_));
      if (names_ != nullptr && names_->Has(*id) && *value != 0) {
        row->names.push_back({*id, NameOf(i, text)});
      }
    }
    row->ids.resize(count_of_row);
    row->values.resize(count_of_row);
    return true;
  }

  bool HasRow(std::string_view line) const override { return !line.empty(); }
  int64_t MaxFeatures(std::string_view /*line*/) const override { return kFeatures; }

 private:
  // Whether a row of 39 fields can only be one with a label, which lacks the tab before its empty last field,
  // or only one without a label: where the first category is tells it.
  bool Fits(std::string_view line, bool labelled) const {
    std::vector<std::string_view> fields;
    for (size_t i = 0; i < kFeatures; ++i) {
      const size_t begin = i == 0 ? 0 : ends_[i - 1] + 1;
      fields.push_back(line.substr(begin, ends_[i] - begin));
    }
    return FitsCriteo(fields, labelled) && !FitsCriteo(fields, !labelled);
  }

  // Fills ends_, with where the fields end. Returns how many there are, or one more than there may be if
  // there are yet more.
  size_t FindFields(std::string_view line) {
    size_t count = 0, at = 0;
    const __m128i tabs = _mm_set1_epi8('\t');
    for (; at + sizeof tabs <= line.size(); at += sizeof tabs) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(line.data() + at));
      auto found = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, tabs)));
      for (; found != 0; found &= found - 1) {
        ends_[count++] = at + static_cast<size_t>(__builtin_ctz(found));
        if (count == ends_.size()) return count;
      }
    }
    for (; at < line.size(); ++at) {
      if (line[at] != '\t') continue;
      ends_[count++] = at;
      if (count == ends_.size()) return count;
    }
    ends_[count++] = line.size();
    return count;
  }

  std::string FieldsRule(size_t count, size_t wanted, std::string_view line) const {
    const bool many = count == ends_.size();
    const auto commas = static_cast<size_t>(std::count(line.begin(), line.end(), ','));
    return fmt::format(
        "a row has {}{} {}; it must have {}{}: {}13 numbers and 26 categories, separated by tabs. {}",
        many ? "more than " : "", many ? count - 1 : count, count == 1 ? "field" : "fields", wanted,
        labels_ || width_ == 0 ? "" : " as the first row", wanted > kFeatures ? "a label, " : "no label, ",
        count == 1 && commas + 1 >= kFeatures ? "For a table with commas set data.train.format: csv, and "
                                                "name its columns of texts in data.hash."
        : count == kFeatures && Fits(line, false)
            ? "It is a row without a label, as of Criteo's own test file: dtrain predict reads such a file."
        : count + 1 == wanted ? "If its last field is empty, its tab is lost: put it back, or remove the row."
                              : "Correct it, or remove the row.");
  }

  bool by_column() const { return !scaled_.empty(); }

  std::string NameOf(size_t i, std::string_view text) const {
    if (i >= kNumbers) return FeatureNameOf(fmt::format("C{}", i - kNumbers + 1), text);
    const std::string column = fmt::format("I{}", i + 1);
    int64_t number = 0;
    if (by_column() || text.empty() || !ReadNumber(text, &number)) {
      return by_column() ? column : FeatureNameOf(column, "");
    }
    return FeatureNameOf(column, BucketText(number));
  }

  static bool ReadNumber(std::string_view text, int64_t* number) {
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, *number);
    return (result.ptr == end && result.ec == std::errc()) || ReadWhole(text, number);
  }
  // Reads other spellings of a whole number, as other programs write a column with gaps: 5.0, 5e0, +5.
  static bool ReadWhole(std::string_view text, int64_t* number) {
    constexpr double kEnd = 9.2e18;
    const std::optional<double> value = ExactNumber(text);
    if (!value || std::fabs(*value) >= kEnd || *value != std::floor(*value)) return false;
    *number = static_cast<int64_t>(*value);
    return true;
  }
  static bool IsTabled(int64_t number) { return number >= 0 && number < kTabled; }

  // Number `i` as a feature of its own; a missing one is 0. Returns false if `text` is none.
  bool NumberItself(size_t i, std::string_view text, uint64_t* id, float* value) const {
    int64_t number = 0;
    if (!text.empty() && !ReadNumber(text, &number)) return false;
    *id = first_number_ + i;
    *value = IsTabled(number) ? scaled_[static_cast<size_t>(number)]
                              : ScaledNumber(static_cast<float>(number), scale_);
    return true;
  }

  static bool ReadWeight(std::string_view text, double* weight) {
    float number = 0;
    if (ParseNumber(text, &number) != NumberText::kGood || number < 0) return false;
    *weight = number;
    return true;
  }

  // Of a number, column `i`. Returns false if `text` is none.
  bool NumberedFeature(size_t i, std::string_view text, uint64_t* id) const {
    int64_t number = 0;
    if (!ReadNumber(text, &number)) return false;
    const bool tabled = IsTabled(number);
    *id = tabled ? features_[i][places_[static_cast<size_t>(number)]]
                 : columns_[i].NumberOf(BucketText(number));
    return true;
  }

  const uint64_t mask_;
  const uint64_t end_;  // of the features
  const bool labels_;
  const NameWish* const names_;
  size_t width_;                           // fields of a row; 0: the first row says it
  const std::optional<size_t> weight_at_;  // of the 39 columns
  std::vector<HashedColumn> columns_;
  std::array<uint8_t, kTabled> places_{};                 // of a number, in features_
  std::array<std::vector<uint64_t>, kNumbers> features_;  // of each column, of its small numbers
  // With data.by_column, else empty: the values of small numbers; the feature of the first number.
  std::vector<float> scaled_;
  NumberScale scale_ = NumberScale::kLog;
  uint64_t first_number_ = 0;
  std::array<size_t, kFeatures + 2> ends_{};
};

}  // namespace

bool FitsCriteo(const std::vector<std::string_view>& fields, bool labelled) {
  const size_t labels = labelled ? 1 : 0;
  size_t categories = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string_view text = fields[i];
    if (text.empty()) continue;
    if (i < labels + kNumbers) {
      const std::optional<double> number = ExactNumber(text);
      if (!number || *number != std::floor(*number)) return false;
      if (i < labels && *number != 0 && *number != 1) return false;
    } else {
      if (text.size() != 8 || text.find_first_not_of("0123456789abcdefABCDEF") != text.npos) return false;
      ++categories;
    }
  }
  return categories > 0;
}

std::unique_ptr<LineParser> MakeCriteoParser(const DataConfig& data, const LineRules& rules) {
  return std::make_unique<CriteoParser>(data, rules);
}

}  // namespace dtrain
