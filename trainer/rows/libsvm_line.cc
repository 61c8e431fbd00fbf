#include "trainer/rows/libsvm_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "trainer/config/user_text.h"
#include "trainer/input/csv_reader.h"

namespace dtrain {
namespace {

constexpr char kGroup[] = "qid:";
constexpr char kFields[] =
    "is FIELD:INDEX:VALUE, libffm's form; libsvm's is INDEX:VALUE. Leave out the fields, or write a table: "
    "wide_deep tells columns from each other in formats criteo and csv with data.hash";
constexpr char kNoLabel[] =
    "stands where the label must; a row is LABEL INDEX:VALUE INDEX:VALUE. If it is the label with the weight "
    "of "
    "its row, set data.weight: label";
constexpr char kLabelOrFeature[] =
    "may be a label with the weight of its row, or the first feature of a row without label. Write a label "
    "before each row, as in 0 1:0.5 (sed 's/^/0 /'), or take off the weights (sed 's/:[^ ]*//')";
constexpr char kRemedy[] = "Correct it, or remove the row.";
// The max number of features where model.inputs does not say how many: an index that is far off would make a
// model without end.
constexpr uint64_t kMaxFound = uint64_t{1} << 32;
// Numbers of so many digits fit into a uint64_t.
constexpr ptrdiff_t kSafeDigits = 19;

// The number that digits are, or the largest one.
uint64_t LongNumber(const char* begin, const char* end) {
  uint64_t number = 0;
  for (const char* next = begin; next < end; ++next) {
    if (__builtin_mul_overflow(number, uint64_t{10}, &number) ||
        __builtin_add_overflow(number, static_cast<uint64_t>(*next - '0'), &number)) {
      return UINT64_MAX;
    }
  }
  return number;
}

bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool EndsToken(char c) { return IsBlank(c) || c == '#'; }

std::string_view TextOf(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

class LibsvmParser : public LineParser {
 public:
  LibsvmParser(const DataConfig& data, const LineRules& rules)
      : base_(static_cast<uint64_t>(data.index_base)),
        rules_(rules),
        width_(Width()),
        has_weights_(!data.weight.empty()),
        rows_(rules.labels ? Rows::kLabelled : Rows::kUnknown) {}

  bool Parse(std::string_view line, SparseLine* row, std::optional<LineFault>* fault) override {
    row->Clear();
    line_ = line;
    end_ = line.data() + line.size();
    if (!HasRow(line)) return false;
    const char* next = SkipBlanks(line.data());
    if (*next == '#') return RefuseComment(fault);
    const char* const behind = TokenEnd(next);
    row->label = TextOf(next, behind);
    if (const size_t colon = row->label.find(':'); colon != std::string_view::npos) {
      const Rows rows = RowsBy(row->label.substr(0, colon));
      if (rows == Rows::kUnknown) return Refuse(next, kLabelOrFeature, fault);
      if (rows == Rows::kLabelled) {
        if (!ReadWeight(next, colon, row, fault)) return false;
      } else {
        row->label = {};
      }
      if (rows_ == Rows::kUnknown) rows_ = rows;
    } else if (rows_ == Rows::kUnknown) {
      rows_ = Rows::kLabelled;
    }
    if (row->label.find(',') != std::string_view::npos) {
      const bool table = line.find(':') == line.npos;
      return Refuse(next,
                    table
                        ? "is no label: a row has one. For a table with commas set data.train.format: csv"
                        : "are several labels, and a row has one: no model of dtrain learns several at once",
                    fault);
    }
    if (!row->label.empty()) next = SkipBlanks(behind);
    if (TextOf(next, end_).substr(0, sizeof kGroup - 1) == kGroup) next = SkipBlanks(TokenEnd(next));
    while (next < end_ && *next != '#') {
      next = AddFeature(next, row, fault);
      if (next == nullptr) return false;
      next = SkipBlanks(next);
    }
    return true;
  }

  bool HasRow(std::string_view line) const override {
    const size_t first = line.find_first_not_of(" \t");
    return first != line.npos && (line[first] != '#' || Contradicts(line));
  }
  // A blank is before each feature but one that the line begins with.
  int64_t MaxFeatures(std::string_view line) const override { return CountBlanks(line) + 1; }

 private:
  // What the rows of a file begin with.
  enum class Rows { kUnknown, kLabelled, kUnlabelled };

  // Says it of a row whose first word is `before`, a colon and a number. What may be either is as the first
  // row of the file.
  Rows RowsBy(std::string_view before) const {
    if (rules_.labels) return Rows::kLabelled;
    if (before == std::string_view(kGroup, sizeof kGroup - 2)) return Rows::kUnlabelled;
    const bool digits = !before.empty() && before.find_first_not_of("0123456789") == before.npos;
    const uint64_t number = digits ? LongNumber(before.data(), before.data() + before.size()) : 0;
    if (!digits || number < base_) return Rows::kLabelled;
    return number >= static_cast<uint64_t>(rules_.end_of_labels) ? Rows::kUnlabelled : rows_;
  }

  // Reads LABEL:WEIGHT. Where labels are not needed the weight is not, either.
  bool ReadWeight(const char* begin, size_t colon, SparseLine* row, std::optional<LineFault>* fault) const {
    if (rules_.labels && !has_weights_) return Refuse(begin, kNoLabel, fault);
    float weight = 0;
    const NumberText state = ParseNumber(row->label.substr(colon + 1), &weight);
    if (rules_.labels && (state != NumberText::kGood || weight < 0)) {
      return Refuse(begin, "must be LABEL:WEIGHT, and the weight a number of at least 0", fault);
    }
    row->weight = weight;
    row->label = row->label.substr(0, colon);
    return true;
  }

  bool Contradicts(std::string_view line) const {
    return IndexBaseOf(line).value_or(static_cast<int64_t>(base_)) != static_cast<int64_t>(base_);
  }

  const char* SkipBlanks(const char* from) const {
    while (from < end_ && IsBlank(*from)) ++from;
    return from;
  }
  const char* TokenEnd(const char* from) const {
    while (from < end_ && !EndsToken(*from)) ++from;
    return from;
  }

  // Returns what is behind the feature; null: it has a fault.
  const char* AddFeature(const char* begin, SparseLine* row, std::optional<LineFault>* fault) const {
    uint64_t index = 0;
    const char* const next = ReadDigits(begin, end_, &index);
    if (next - begin > kSafeDigits) index = LongNumber(begin, next);
    if (next == begin || next == end_ || *next != ':') {
      Refuse(begin, fmt::format("must be INDEX:VALUE, where INDEX is a whole number from {} on", base_),
             fault);
      return nullptr;
    }
    const bool known = index >= base_ && index - base_ < width_;
    if (!known && (index < base_ || rules_.beyond == nullptr)) {
      RefuseIndex(begin, next, index, fault);
      return nullptr;
    }
    const char* const value = next + 1;
    const char* const behind = TokenEnd(value);
    float number = 0;
    const NumberText state = ParseNumber(TextOf(value, behind), &number);
    if (state != NumberText::kGood) {
      if (HasField(begin)) {
        Refuse(begin, kFields, fault);
        return nullptr;
      }
      const std::string text = value == behind ? "is empty" : "= " + Shown(std::string(value, behind));
      *fault = LineFault{At(value), fmt::format("the value of feature {} {}; {}. {}", index, text,
                                                NumberRule(state), kRemedy)};
      return nullptr;
    }
    if (!known) {
      ++*rules_.beyond;
      return behind;
    }
    row->ids.push_back(index - base_);
    row->values.push_back(number);
    return behind;
  }

  // Behind the last feature.
  uint64_t Width() const {
    if (rules_.inputs == kKeyInputs)
      return UINT64_MAX - base_;  // LongNumber() gives this for all that is larger
    return rules_.inputs ? static_cast<uint64_t>(*rules_.inputs) : kMaxFound;
  }
  size_t At(const char* place) const { return static_cast<size_t>(place - line_.data()); }

  // Sets the fault of the token at `place`. Returns false.
  bool Refuse(const char* place, const std::string& rule, std::optional<LineFault>* fault) const {
    *fault = LineFault{At(place),
                       fmt::format("{} {}. {}", Shown(std::string(place, TokenEnd(place))), rule, kRemedy)};
    return false;
  }
  // INDEX:VALUE with a field before it.
  bool HasField(const char* begin) const {
    const std::string_view word = TextOf(begin, TokenEnd(begin));
    const size_t colon = word.find(':'), second = word.find(':', colon + 1);
    return second != word.npos && ParseWhole(word.substr(colon + 1, second - colon - 1)) &&
           ExactNumber(word.substr(second + 1));
  }
  bool RefuseComment(std::optional<LineFault>* fault) const {
    *fault =
        LineFault{0, fmt::format("the comment says that indexes begin at {}, and data.index_base = {}: all "
                                 "features would be one off. {}, or if the comment is wrong remove the "
                                 "line.",
                                 1 - base_, base_,
                                 rules_.beyond == nullptr
                                     ? fmt::format("Set data.index_base to {}", 1 - base_)
                                     : fmt::format("The model was trained on indexes from {}: write "
                                                   "these so",
                                                   base_))};
    return false;
  }
  void RefuseIndex(const char* begin, const char* end, uint64_t index,
                   std::optional<LineFault>* fault) const {
    if (HasField(begin)) {
      Refuse(begin, kFields, fault);
      return;
    }
    const std::string title = fmt::format("feature {}", Shown(std::string(begin, end)));
    *fault = LineFault{
        At(begin),
        index < base_ ? fmt::format("{}; indexes begin at 1. If those of this file begin at 0, set "
                                    "data.index_base: 0.",
                                    title)
        : !rules_.inputs
            ? fmt::format("{}; must be {} to {} where model.inputs is not set. Correct it, or set "
                          "model.inputs, or model.table: hash, which takes any index.",
                          title, base_, kMaxFound + base_ - 1)
        : rules_.inputs != kKeyInputs
            ? fmt::format("{}; must be {} to {} (model.inputs = {}; where it is not set, the features "
                          "of data.train). Raise model.inputs, or remove the row.",
                          title, base_, *rules_.inputs + static_cast<int64_t>(base_) - 1, *rules_.inputs)
            : fmt::format("{}; must be below {}. {}", title, width_ + base_, kRemedy)};
  }

  const uint64_t base_;
  const LineRules rules_;
  const uint64_t width_;
  const bool has_weights_;
  Rows rows_;
  std::string_view line_;
  const char* end_ = nullptr;  // of line_
};

}  // namespace

std::optional<int64_t> IndexBaseOf(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  if (first == line.npos || line[first] != '#') return std::nullopt;
  std::string text(line);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto says = [&](const char* word) { return text.find(word) != text.npos; };
  if (!says("based") || !(says("ind") || says("feature") || says("column"))) return std::nullopt;
  const bool zero = says("zero-based") || says("zero based") || says("0-based") || says("0 based");
  const bool one = says("one-based") || says("one based") || says("1-based") || says("1 based");
  if (zero == one) return std::nullopt;
  return zero ? 0 : 1;
}

std::unique_ptr<LineParser> MakeLibsvmParser(const DataConfig& data, const LineRules& rules) {
  return std::make_unique<LibsvmParser>(data, rules);
}

}  // namespace dtrain
