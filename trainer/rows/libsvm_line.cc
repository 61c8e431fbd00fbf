#include "trainer/rows/libsvm_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "trainer/config/user_text.h"
#include "trainer/input/csv_reader.h"

namespace dtrain {
namespace {

constexpr char kGroup[] = "qid:";
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
  LibsvmParser(int64_t base, std::optional<int64_t> inputs, bool labels)
      : base_(static_cast<uint64_t>(base)), inputs_(inputs), width_(Width()), labels_(labels) {}

  bool Parse(std::string_view line, SparseLine* row, std::optional<LineFault>* fault) override {
    row->Clear();
    line_ = line;
    end_ = line.data() + line.size();
    if (!HasRow(line)) return false;
    const char* next = SkipBlanks(line.data());
    const char* behind = TokenEnd(next);
    row->label = TextOf(next, behind);
    if (row->label.find(':') != std::string_view::npos) {
      if (labels_) {
        return Refuse(next, "stands where the label must; a row is LABEL INDEX:VALUE INDEX:VALUE", fault);
      }
      row->label = {};
      behind = next;
    }
    if (row->label.find(',') != std::string_view::npos) {
      return Refuse(next, "is no label: a row has one. For a table with commas set data.train.format: csv",
                    fault);
    }
    next = SkipBlanks(behind);
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
    return first != line.npos && line[first] != '#';
  }
  // A blank is before each feature but one that the line begins with.
  int64_t MaxFeatures(std::string_view line) const override { return CountBlanks(line) + 1; }

 private:
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
    const char* next = begin;
    for (; next < end_; ++next) {
      const auto digit = static_cast<unsigned>(*next - '0');
      if (digit >= 10) break;
      index = index * 10 + digit;
    }
    if (next - begin > kSafeDigits) index = LongNumber(begin, next);
    if (next == begin || next == end_ || *next != ':') {
      Refuse(begin, fmt::format("must be INDEX:VALUE, where INDEX is a whole number from {} on", base_),
             fault);
      return nullptr;
    }
    if (index < base_ || index - base_ >= width_) {
      RefuseIndex(begin, next, index, fault);
      return nullptr;
    }
    const char* const value = next + 1;
    const char* const behind = TokenEnd(value);
    float number = 0;
    const NumberText state = ParseNumber(TextOf(value, behind), &number);
    if (state != NumberText::kGood) {
      const std::string text = value == behind ? "is empty" : "= " + Shown(std::string(value, behind));
      *fault = LineFault{At(value), fmt::format("the value of feature {} {}; {}. {}", index, text,
                                                NumberRule(state), kRemedy)};
      return nullptr;
    }
    row->ids.push_back(index - base_);
    row->values.push_back(number);
    return behind;
  }

  // Behind the last feature.
  uint64_t Width() const {
    if (inputs_ == kKeyInputs) return UINT64_MAX - base_;  // LongNumber() gives this for all that is larger
    return inputs_ ? static_cast<uint64_t>(*inputs_) : kMaxFound;
  }
  size_t At(const char* place) const { return static_cast<size_t>(place - line_.data()); }

  // Sets the fault of the token at `place`. Returns false.
  bool Refuse(const char* place, const std::string& rule, std::optional<LineFault>* fault) const {
    *fault = LineFault{At(place),
                       fmt::format("{} {}. {}", Shown(std::string(place, TokenEnd(place))), rule, kRemedy)};
    return false;
  }
  void RefuseIndex(const char* begin, const char* end, uint64_t index,
                   std::optional<LineFault>* fault) const {
    const std::string title = fmt::format("feature {}", Shown(std::string(begin, end)));
    *fault = LineFault{
        At(begin),
        index < base_ ? fmt::format("{}; indexes begin at 1. If those of this file begin at 0, set "
                                    "data.index_base: 0.",
                                    title)
        : !inputs_    ? fmt::format("{}; must be {} to {} where model.inputs is not set. Correct it, or set "
                                       "model.inputs.",
                                    title, base_, kMaxFound + base_ - 1)
        : inputs_ != kKeyInputs
            ? fmt::format("{}; must be {} to {} (model.inputs = {}; where it is not set, the features "
                          "of data.train). Raise model.inputs, or remove the row.",
                          title, base_, *inputs_ + static_cast<int64_t>(base_) - 1, *inputs_)
            : fmt::format("{}; must be below {}. {}", title, width_ + base_, kRemedy)};
  }

  const uint64_t base_;
  const std::optional<int64_t> inputs_;
  const uint64_t width_;
  const bool labels_;
  std::string_view line_;
  const char* end_ = nullptr;  // of line_
};

}  // namespace

std::unique_ptr<LineParser> MakeLibsvmParser(const DataConfig& data, std::optional<int64_t> inputs,
                                             bool labels) {
  return std::make_unique<LibsvmParser>(data.index_base, inputs, labels);
}

}  // namespace dtrain
