#include "trainer/rows/vw_line.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "trainer/config/data_config.h"
#include "trainer/config/user_text.h"
#include "trainer/input/csv_reader.h"
#include "trainer/rows/hashed_feature.h"

namespace dtrain {
namespace {

constexpr uint64_t kPairFactor = 16777619;

constexpr uint32_t Rotate(uint32_t x, int bits) { return x << bits | x >> (32 - bits); }

constexpr uint32_t Scramble(uint32_t word) { return Rotate(word * 0xcc9e2d51, 15) * 0x1b873593; }

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A blank or another control character of ASCII, which does not count at the ends of a name.
bool IsControl(char c) { return static_cast<unsigned char>(c) <= ' '; }

// Returns the number of a feature in a namespace, and of a namespace in namespace 0.
uint64_t HashName(std::string_view name, uint64_t space) {
  while (!name.empty() && IsControl(name.front())) name.remove_prefix(1);
  while (!name.empty() && IsControl(name.back())) name.remove_suffix(1);
  uint64_t number = 0;
  for (const char c : name) {
    if (!IsDigit(c)) return Murmur3(name, static_cast<uint32_t>(space));
    number = 10 * number + static_cast<uint64_t>(c - '0');
  }
  return number + space;
}

// What ends the name of a feature or namespace.
constexpr std::array<bool, 256> Stops() {
  std::array<bool, 256> stops{};
  for (const unsigned char c : {' ', '\t', '\r', ':', '|'}) stops[c] = true;
  return stops;
}
constexpr std::array<bool, 256> kStops = Stops();

bool EndsWord(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool EndsNumber(char c) { return EndsWord(c) || c == '|'; }

// Whether Vowpal Wabbit takes a number, or nothing for a number, off the front of a text that is no number
// as a whole. What follows is then lost to it, or the value is 0.
bool BeginsAsNumber(std::string_view text) {
  const auto begins = [&](const char* word) { return strncasecmp(text.data(), word, 3) == 0; };
  if (text.find_first_not_of("0123456789+-.eE") == text.npos) return true;
  if (text.front() == '+' || text.front() == '-') text.remove_prefix(1);
  if (text.size() >= 3 && (begins("nan") || begins("inf"))) return true;
  if (!text.empty() && text.front() == '.') text.remove_prefix(1);
  return !text.empty() && IsDigit(text.front());
}

class VwParser : public LineParser {
 public:
  VwParser(const DataConfig& data, const LineRules& rules)
      : mask_(LowBits(*HashBits(data))),
        end_(rules.inputs ? static_cast<uint64_t>(*rules.inputs) : UINT64_MAX),
        has_offsets_(!data.offset.empty()),
        unlabelled_(rules.unlabelled),
        names_(rules.names) {
    slots_.fill(kNoSlot);
    std::vector<std::string> crosses = data.crosses;
    std::sort(crosses.begin(), crosses.end());
    for (const std::string& letters : crosses) AddPattern(letters);
    for (const char letter : CrossedLetters(data)) AddLetter(static_cast<unsigned char>(letter));
    MakeCrosses();
  }

  bool Parse(std::string_view line, SparseLine* row, std::optional<LineFault>* fault) override {
    row->Clear();
    for (std::vector<uint32_t>& crossed : crossed_) crossed.clear();
    words_.clear();
    line_ = line;
    row_ = row;
    fault_ = fault;
    const size_t bar = line.find('|');
    if (bar == line.npos) {
      if (line.find_first_not_of(' ') == line.npos) return false;
      return Fail(line.data() + line.size(),
                  R"(a row must have a "|" before its features. For none write "1 |".)");
    }
    if (!ReadHead(line.substr(0, bar))) return false;
    if (row->label.empty() && unlabelled_ != nullptr) {
      ++*unlabelled_;
      return false;
    }
    at_ = line.data() + bar;
    const char* const end = line.data() + line.size();
    while (at_ < end) {
      if (!ReadNamespace()) return false;
    }
    return AddCrosses(line.data() + bar);
  }

  bool HasRow(std::string_view line) const override {
    const size_t first = line.find_first_not_of(' ');
    if (first == line.npos) return false;
    const size_t bar = line.find('|');
    if (unlabelled_ == nullptr || bar == line.npos) return true;
    if (first == bar) return false;
    // A single word is a label, unless it is a tag.
    const size_t behind = line.find(' ', first);
    if (behind > bar) return false;
    return line[first] != '\'' || line.find_first_not_of(' ', behind) < bar;
  }
  // A blank is before each feature that is not a cross.
  int64_t MaxFeatures(std::string_view line) const override {
    return patterns_.empty() ? CountBlanks(line) : static_cast<int64_t>(kMaxVwFeatures);
  }

 private:
  static constexpr int16_t kNoSlot = -1;
  static constexpr unsigned char kAnyLetter = ':';  // no name begins with it
  static constexpr unsigned char kFirstOfAny = ' ', kLastOfAny = '~';

  // ":a" and "a:" are the same cross: the first one counts.
  void AddPattern(const std::string& letters) {
    if (letters.size() != 2) {
      throw UserError(
          "data.crosses: \"{}\" must be the first letters of two namespaces, or : for any. Try ab.",
          Printable(letters));
    }
    const std::string other = {letters[1], letters[0]};
    if (std::count(patterns_.begin(), patterns_.end(), other) > 0) return;
    has_any_ = has_any_ || letters.find(static_cast<char>(kAnyLetter)) != letters.npos;
    patterns_.push_back(letters);
  }

  void AddLetter(unsigned char letter) {
    slots_[letter] = static_cast<int16_t>(crossed_.size());
    crossed_.emplace_back();
  }

  // Makes the pairs of all letters that are known, each once: ab and not ba. A letter that is found later
  // leaves the order of the others as it is.
  void MakeCrosses() {
    std::set<std::pair<unsigned char, unsigned char>> all;
    for (const std::string& pattern : patterns_) {
      for (const unsigned char first : LettersOf(pattern[0])) {
        for (const unsigned char second : LettersOf(pattern[1])) all.emplace(first, second);
      }
    }
    crosses_.clear();
    for (const auto& [first, second] : all) {
      if (first <= second || all.count({second, first}) == 0) crosses_.emplace_back(first, second);
    }
  }

  std::vector<unsigned char> LettersOf(char letter) const {
    const auto wanted = static_cast<unsigned char>(letter);
    if (wanted != kAnyLetter) return {wanted};
    std::vector<unsigned char> letters;
    for (unsigned char known = kFirstOfAny; known <= kLastOfAny; ++known) {
      if (slots_[known] != kNoSlot) letters.push_back(known);
    }
    return letters;
  }

  bool Fail(const char* at, std::string rule) {
    fault_->emplace(LineFault{static_cast<size_t>(at - line_.data()), std::move(rule)});
    return false;
  }

  // Reads label, weight, offset and tag. The last word is a tag if the bar follows at once, or behind a
  // quote.
  bool ReadHead(std::string_view head) {
    if (const size_t tab = head.find('\t'); tab != head.npos) {
      return Fail(head.data() + tab, "label, weight and tag must be separated by blanks. Replace the tab.");
    }
    std::array<std::string_view, 4> words;
    size_t count = 0;
    for (size_t at = 0; (at = head.find_first_not_of(' ', at)) != head.npos;) {
      if (count == words.size()) {
        const std::string other = OtherLabelRule(words[0]);
        return other.empty() ? Fail(head.data() + at, HeadRule()) : Fail(words[0].data(), other);
      }
      const size_t end = std::min(head.find(' ', at), head.size());
      words[count++] = head.substr(at, end - at);
      at = end;
    }
    if (count > 0 && (words[count - 1].front() == '\'' || head.back() != ' ')) {
      row_->tag = words[--count];
      float number = 0;
      if (has_offsets_ && count == 2 && ParseNumber(row_->tag, &number) == NumberText::kGood) {
        return Fail(
            row_->tag.data(),
            fmt::format("{} touches the |, so it is a tag and no initial prediction (data.offset). Put a "
                        "blank before the |, or of a tag a ' before it.",
                        row_->tag));
      }
      if (row_->tag.front() == '\'') row_->tag.remove_prefix(1);
    }
    for (size_t i = 0; i < count; ++i) {
      if (words[i].size() < 3) continue;  // as most labels
      const std::string other = OtherLabelRule(words[i]);
      if (!other.empty()) return Fail(words[i].data(), other);
    }
    const size_t max = has_offsets_ ? 3 : 2;
    if (count > max) return Fail(words[max].data(), HeadRule());
    if (count > 0) row_->label = words[0];
    if (count > 1 && !ReadWeight(words[1])) return false;
    return count < 3 || ReadNumber(words[2], "the initial prediction", &row_->offset);
  }

  // What is wrong with a label of a job of Vowpal Wabbit's that dtrain has not; empty: it is none.
  static std::string OtherLabelRule(std::string_view word) {
    constexpr std::string_view kJobs[] = {"shared", "ccb", "slates"};
    const auto colons = std::count(word.begin(), word.end(), ':');
    const bool job = std::find(std::begin(kJobs), std::end(kJobs), word) != std::end(kJobs);
    const char* const what = job           ? "begins an example of contextual bandits, of several lines"
                             : colons == 1 ? "is a label of costs (CLASS:COST)"
                             : colons > 1  ? "is a label of contextual bandits (ACTION:COST:PROBABILITY)"
                                           : "are several labels";
    if (!job && colons == 0 && !AreNumbers(word, ',', 2)) return "";
    return fmt::format(
        "{} {}, which no model of dtrain learns: a row has one label, a number or a name. Write that in its "
        "place.",
        Shown(std::string(word)), what);
  }

  bool ReadWeight(std::string_view text) {
    float weight = 0;
    if (!ReadNumber(text, "the weight", &weight)) return false;
    if (weight < 0)
      return Fail(text.data(), fmt::format("the weight = {}; must be at least 0{}", text, kRemedy));
    row_->weight = weight;
    return true;
  }

  bool ReadNumber(std::string_view text, const char* title, float* number) {
    const NumberText state = ParseNumber(text, number);
    if (state == NumberText::kGood) return true;
    return Fail(text.data(), NumberFault(title, text, state));
  }

  // Reads from a bar to the next.
  bool ReadNamespace() {
    const char* const name = ++at_;
    SkipName();
    const std::string_view text(name, static_cast<size_t>(at_ - name));
    space_ = text.empty() ? 0 : HashName(text, 0);
    space_name_ = text;
    nameless_ = 0;
    weight_ = 1;
    if (at_ < End() && *at_ == ':') {
      if (text.empty()) return Fail(at_, "a namespace with a weight must have a name. Write |a:0.5.");
      if (!ReadNumber(TakeNumber(), "the weight of a namespace", &weight_)) return false;
    }
    const size_t first = row_->ids.size();
    while (at_ < End() && (*at_ == ' ' || *at_ == '\t')) {
      ++at_;
      if (!ReadNumbered() && at_ < End() && !EndsNumber(*at_) && !ReadFeature()) return false;
    }
    if (at_ < End() && *at_ != '|')
      return Fail(at_, "behind a name or a value must be a blank or a |. Put a blank there.");
    const unsigned char letter = text.empty() ? ' ' : static_cast<unsigned char>(text.front());
    if (slots_[letter] == kNoSlot) {
      if (!has_any_ || letter < kFirstOfAny || letter > kLastOfAny) return true;
      AddLetter(letter);
      MakeCrosses();
    }
    std::vector<uint32_t>& crossed = CrossedOf(letter);
    for (size_t i = first; i < row_->ids.size(); ++i) crossed.push_back(static_cast<uint32_t>(i));
    return true;
  }

  // Reads a feature whose name is a number, the most frequent case, in one go. False: it is another one, or
  // has a fault, and nothing is read.
  bool ReadNumbered() {
    if (names_ != nullptr) return false;  // ReadFeature() gives names
    const char* const end = End();
    uint64_t number = 0;
    const char* const at = ReadDigits(at_, end, &number);
    if (at == at_) return false;
    float value = 1;
    const char* behind = at;
    if (at < end && *at == ':') {
      const char* const text = ++behind;
      while (behind < end && !EndsNumber(*behind)) ++behind;
      if (ParseNumber({text, static_cast<size_t>(behind - text)}, &value) != NumberText::kGood) return false;
    }
    if (behind < end && !EndsNumber(*behind)) return false;
    const uint64_t id = (number + space_) & mask_;
    value *= weight_;
    if (id >= end_ || !std::isfinite(value) || row_->ids.size() == kMaxVwFeatures) return false;
    at_ = behind;
    if (value == 0) return true;
    row_->ids.push_back(id);
    row_->values.push_back(value);
    return true;
  }

  bool ReadFeature() {
    const char* const begin = at_;
    SkipName();
    const std::string_view name(begin, static_cast<size_t>(at_ - begin));
    if (at_ == End() || *at_ != ':') return AddWord(begin, HashName(name, space_), weight_, name);
    const std::string_view text = TakeNumber();
    float value = 0;
    const NumberText state = ParseNumber(text, &value);
    if (state == NumberText::kGood) {
      if (!name.empty()) return AddWord(begin, HashName(name, space_), weight_ * value, name);
      const uint64_t place = nameless_++;
      return AddWord(begin, space_ + place, weight_ * value, name, {}, place);
    }
    if (text.empty())
      return Fail(text.data(), "a colon must have a value behind it. Write name:1, or the name alone.");
    if (BeginsAsNumber(text)) return Fail(text.data(), NumberFault("the value", text, state));
    while (at_ < End() && !EndsWord(*at_)) ++at_;
    const std::string_view word(text.data(), static_cast<size_t>(at_ - text.data()));
    return AddWord(begin, HashName(word, HashName(name, space_)), 1, name, word);
  }

  // What a feature's name is made of, beside its namespace.
  struct Word {
    std::string_view name;  // empty: it has its place among such
    std::string_view text{};
    uint64_t place = 0;
    std::string_view space{};
  };

  static std::string NameOf(const Word& word) {
    std::string name(word.space);
    if (!name.empty()) name += '^';
    name += word.name.empty() ? fmt::format("[{}]", word.place) : std::string(word.name);
    return word.text.empty() ? name : name + "^" + std::string(word.text);
  }

  // The features that are no crosses are those of words_.
  bool AddWord(const char* at, uint64_t hash, float value, std::string_view name, std::string_view text = {},
               uint64_t place = 0) {
    return names_ == nullptr ? Add(at, hash, value)
                             : AddNamed(at, hash, value, {name, text, place, space_name_});
  }
  // A function of its own, so that nothing is copied where no names are wanted.
  [[gnu::noinline]] bool AddNamed(const char* at, uint64_t hash, float value, const Word& word) {
    const size_t before = row_->ids.size();
    if (!Add(at, hash, value)) return false;
    if (row_->ids.size() == before) return true;
    words_.push_back(word);
    if (names_->Has(row_->ids.back())) row_->names.push_back({row_->ids.back(), NameOf(word)});
    return true;
  }

  bool Add(const char* at, uint64_t hash, float value) {
    if (value == 0) return true;
    if (!std::isfinite(value))
      return Fail(
          at, fmt::format("the value times the weight of its namespace must be within float32{}", kRemedy));
    const uint64_t id = hash & mask_;
    if (id >= end_) return Fail(at, BeyondInputsRule(id, end_, mask_));
    if (row_->ids.size() == kMaxVwFeatures) return Fail(at, ManyRule());
    row_->ids.push_back(id);
    row_->values.push_back(value);
    return true;
  }

  bool AddCrosses(const char* bar) {
    for (const auto& [first, second] : crosses_) {
      const std::vector<uint32_t>& ones = CrossedOf(first);
      const std::vector<uint32_t>& others = CrossedOf(second);
      // At most; a namespace with itself has half as many.
      if (ones.size() * others.size() > 2 * kMaxVwFeatures) return Fail(bar, ManyRule());
      for (size_t i = 0; i < ones.size(); ++i) {
        const uint64_t half = kPairFactor * row_->ids[ones[i]];
        const float value = row_->values[ones[i]];
        for (size_t k = first == second ? i : 0; k < others.size(); ++k) {
          const size_t before = row_->ids.size();
          if (!AddPair(bar, half ^ row_->ids[others[k]], value * row_->values[others[k]])) return false;
          if (names_ == nullptr || row_->ids.size() == before || !names_->Has(row_->ids.back())) continue;
          row_->names.push_back(
              {row_->ids.back(), NameOf(words_[ones[i]]) + "*" + NameOf(words_[others[k]])});
        }
      }
    }
    return true;
  }

  bool AddPair(const char* bar, uint64_t hash, float value) {
    if (std::isfinite(value)) return Add(bar, hash, value);
    return Fail(bar,
                fmt::format("the product of two values (data.crosses) must be within float32{}", kRemedy));
  }

  static std::string ManyRule() {
    return fmt::format("a row must have at most {} features, with those of data.crosses{}", kMaxVwFeatures,
                       kRemedy);
  }

  std::vector<uint32_t>& CrossedOf(unsigned char letter) {
    return crossed_[static_cast<size_t>(slots_[letter])];
  }

  const char* End() const { return line_.data() + line_.size(); }
  void SkipName() {
    while (at_ < End() && !kStops[static_cast<unsigned char>(*at_)]) ++at_;
  }
  // Returns the text behind the colon, to a blank or a bar.
  std::string_view TakeNumber() {
    const char* const begin = ++at_;
    while (at_ < End() && !EndsNumber(*at_)) ++at_;
    return {begin, static_cast<size_t>(at_ - begin)};
  }

  std::string HeadRule() const {
    return has_offsets_
               ? "before the first | must be at most a label, a weight, an initial prediction and a tag. "
                 "Leave out the rest."
               : "before the first | must be at most a label, a weight and a tag. If a third number is the "
                 "initial prediction, set data.offset to initial; else leave it out.";
  }
  static constexpr char kRemedy[] = ". Correct it, or remove the row.";

  const uint64_t mask_;
  const uint64_t end_;         // of the features
  const bool has_offsets_;     // data.offset
  int64_t* const unlabelled_;  // LineRules
  const NameWish* const names_;
  std::vector<std::string> patterns_;  // of two letters; kAnyLetter stands for all
  bool has_any_ = false;
  std::vector<std::pair<unsigned char, unsigned char>> crosses_;
  std::array<int16_t, 256> slots_{};            // of crossed_, by letter
  std::vector<std::vector<uint32_t>> crossed_;  // the features of a letter, by their places in the row
  std::vector<Word> words_;                     // if names are wanted

  std::string_view line_;
  SparseLine* row_ = nullptr;
  std::optional<LineFault>* fault_ = nullptr;
  const char* at_ = nullptr;
  // Of the namespace that is read.
  uint64_t space_ = 0;
  std::string_view space_name_;
  uint64_t nameless_ = 0;
  float weight_ = 1;
};

}  // namespace

uint32_t Murmur3(std::string_view bytes, uint32_t seed) {
  uint32_t hash = seed;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 4; at += 4, left -= 4) {
    uint32_t word = 0;
    std::memcpy(&word, at, 4);  // the first byte is the lowest
    hash = Rotate(hash ^ Scramble(word), 13) * 5 + 0xe6546b64;
  }
  uint32_t last = 0;
  for (size_t i = left; i > 0; --i) last = last << 8 | static_cast<unsigned char>(at[i - 1]);
  hash ^= Scramble(last);  // 0 of no bytes
  hash ^= static_cast<uint32_t>(bytes.size());
  hash = (hash ^ hash >> 16) * 0x85ebca6b;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35;
  return hash ^ hash >> 16;
}

std::set<char> CrossedLetters(const DataConfig& data) {
  std::set<char> letters;
  for (const std::string& pair : data.crosses) letters.insert(pair.begin(), pair.end());
  letters.erase(':');
  return letters;
}

void EraseLettersOf(std::string_view line, std::set<char>* letters) {
  for (size_t bar = line.find('|'); bar != line.npos; bar = line.find('|', bar + 1)) {
    const bool named = bar + 1 < line.size() && !kStops[static_cast<unsigned char>(line[bar + 1])];
    letters->erase(named ? line[bar + 1] : ' ');
  }
}

std::unique_ptr<LineParser> MakeVwParser(const DataConfig& data, const LineRules& rules) {
  return std::make_unique<VwParser>(data, rules);
}

}  // namespace dtrain
