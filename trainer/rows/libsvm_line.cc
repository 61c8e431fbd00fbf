// The parser of libsvm's text: LABEL INDEX:VALUE INDEX:VALUE ..., with blanks or tabs between them. "#"
// begins a comment, which ends with the line; one that says that indexes begin elsewhere than data.index_base
// is a fault. Indexes need no order, and one that comes twice counts twice. With data.weight the label may be
// LABEL:WEIGHT, in each row for itself. A group of rows, qid:NUMBER behind the label, is left out: no model
// here ranks.
//
// Where labels are not needed a row may begin with 1, with 1.5:2, which is a label and a weight, or with 7:2,
// which is a feature if the model has no label 7. What may be both is as the first row, or there a fault.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>

#include "trainer/config/data_config.h"
#include "trainer/config/model_config.h"
#include "trainer/config/user_text.h"
#include "trainer/input/csv_reader.h"
#include "trainer/rows/sparse_line.h"

namespace dtrain {
namespace {

constexpr char kFields[] =
    "is FIELD:INDEX:VALUE, libffm's form; libsvm's is INDEX:VALUE. Leave out the fields, or write a table: "
    "wide_deep tells columns from each other in format criteo and in tables with data.hash or data.bags";
constexpr char kNoLabel[] =
    "stands where the label must; a row is LABEL INDEX:VALUE INDEX:VALUE. If it is the label with the weight "
    "of its row, set data.weight: label";
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
  return std::from_chars(begin, end, number).ec == std::errc() ? number : UINT64_MAX;
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
    row_ = row;
    fault_ = fault;
    if (!HasRow(line)) return false;
    const char* next = SkipBlanks(line.data());
    if (*next == '#') return RefuseComment();
    const char* const behind = TokenEnd(next);
    row->label = TextOf(next, behind);
    if (const size_t colon = row->label.find(':'); colon != std::string_view::npos) {
      const Rows rows = RowsBy(row->label.substr(0, colon));
      if (rows == Rows::kUnknown) return Refuse(next, kLabelOrFeature);
      if (rows == Rows::kLabelled) {
        if (!ReadWeight(next, colon)) return false;
      } else {
        row->label = {};
      }
      if (rows_ == Rows::kUnknown) rows_ = rows;
    } else if (rows_ == Rows::kUnknown) {
      rows_ = Rows::kLabelled;
    }
    if (row->label.find(',') != std::string_view::npos) {
      return Refuse(next,
                    line.find(':') == line.npos
                        ? "is no label: a row has one. For a table with commas set data.train.format: csv"
                        : "are several labels, and a row has one: no model of dtrain learns several at once");
    }
    if (!row->label.empty()) next = SkipBlanks(behind);
    if (IsGroup(TextOf(next, end_))) next = SkipBlanks(TokenEnd(next));
    while (next < end_ && *next != '#') {
      if (!AddFeature(&next)) return false;
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
    if (before == "qid" || before == "QID") return Rows::kUnlabelled;
    const bool digits = !before.empty() && before.find_first_not_of("0123456789") == before.npos;
    const uint64_t number = digits ? LongNumber(before.data(), before.data() + before.size()) : 0;
    if (!digits || number < base_) return Rows::kLabelled;
    return number >= static_cast<uint64_t>(rules_.end_of_labels) ? Rows::kUnlabelled : rows_;
  }

  // Reads LABEL:WEIGHT. Where labels are not needed the weight is not, either.
  bool ReadWeight(const char* begin, size_t colon) const {
    if (rules_.labels && !has_weights_) return Refuse(begin, kNoLabel);
    float weight = 0;
    const NumberText state = ParseNumber(row_->label.substr(colon + 1), &weight);
    if (rules_.labels && (state != NumberText::kGood || weight < 0)) {
      return Refuse(begin, "must be LABEL:WEIGHT, and the weight a number of at least 0");
    }
    row_->weight = weight;
    row_->label = row_->label.substr(0, colon);
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

  // Goes behind the feature. False: it has a fault.
  bool AddFeature(const char** at) const {
    const char* const begin = *at;
    uint64_t index = 0;
    const char* const next = ReadDigits(begin, end_, &index);
    if (next - begin > kSafeDigits) index = LongNumber(begin, next);
    if (next == begin || next == end_ || *next != ':') {
      return Refuse(begin,
                    fmt::format("must be INDEX:VALUE, where INDEX is a whole number from {} on", base_));
    }
    const bool known = index >= base_ && index - base_ < width_;
    const char* const value = next + 1;
    *at = TokenEnd(value);
    if (!known && (index < base_ || rules_.beyond == nullptr)) {
      return HasField(begin) ? Refuse(begin, kFields) : Fail(begin, IndexRule({begin, next}, index));
    }
    float number = 0;
    const NumberText state = ParseNumber(TextOf(value, *at), &number);
    if (state != NumberText::kGood) {
      if (HasField(begin)) return Refuse(begin, kFields);
      return Fail(value,
                  NumberFault(fmt::format("the value of feature {}", index), TextOf(value, *at), state));
    }
    if (known) {
      row_->ids.push_back(index - base_);
      row_->values.push_back(number);
    } else {
      ++*rules_.beyond;
    }
    return true;
  }

  // Behind the last feature.
  uint64_t Width() const {
    if (rules_.inputs == kKeyInputs)
      return UINT64_MAX - base_;  // LongNumber() gives this for all that is larger
    return rules_.inputs ? static_cast<uint64_t>(*rules_.inputs) : kMaxFound;
  }

  // Set the fault: of the text that begins at `place`, with its word in front of the rule in Refuse(). Return
  // false.
  bool Fail(const char* place, std::string rule) const {
    fault_->emplace(LineFault{static_cast<size_t>(place - line_.data()), std::move(rule)});
    return false;
  }
  bool Refuse(const char* place, const std::string& rule) const {
    return Fail(place, fmt::format("{} {}. {}", Shown(std::string(place, TokenEnd(place))), rule, kRemedy));
  }
  // INDEX:VALUE with a field before it.
  bool HasField(const char* begin) const {
    const std::string_view word = TextOf(begin, TokenEnd(begin));
    const size_t colon = word.find(':'), second = word.find(':', colon + 1);
    return second != word.npos && ParseWhole(word.substr(colon + 1, second - colon - 1)) &&
           ExactNumber(word.substr(second + 1));
  }
  bool RefuseComment() const {
    const std::string remedy =
        rules_.beyond == nullptr
            ? fmt::format("Set data.index_base to {}", 1 - base_)
            : fmt::format("The model was trained on indexes from {}: write these so", base_);
    return Fail(line_.data(),
                fmt::format("the comment says that indexes begin at {}, and data.index_base = {}: all "
                            "features would be one off. {}, or if the comment is wrong remove the line.",
                            1 - base_, base_, remedy));
  }
  std::string IndexRule(const std::string& digits, uint64_t index) const {
    const std::string title = fmt::format("feature {}", Shown(digits));
    if (index < base_) {
      return fmt::format("{}; indexes begin at 1. If those of this file begin at 0, set data.index_base: 0.",
                         title);
    }
    if (!rules_.inputs) {
      return fmt::format(
          "{}; must be {} to {} where model.inputs is not set. Correct it, or set model.inputs, or "
          "model.table: hash, which takes any index.",
          title, base_, kMaxFound + base_ - 1);
    }
    if (rules_.inputs == kKeyInputs) {
      return fmt::format("{}; must be below {}. {}", title, width_ + base_, kRemedy);
    }
    return fmt::format(
        "{}; must be {} to {} (model.inputs = {}; where it is not set, the features of data.train). Raise "
        "model.inputs, or remove the row.",
        title, base_, *rules_.inputs + static_cast<int64_t>(base_) - 1, *rules_.inputs);
  }

  const uint64_t base_;
  const LineRules rules_;
  const uint64_t width_;
  const bool has_weights_;
  Rows rows_;
  std::string_view line_;
  const char* end_ = nullptr;  // of line_
  SparseLine* row_ = nullptr;
  std::optional<LineFault>* fault_ = nullptr;
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
