#include "trainer/survey/column_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr size_t kFrequent = 20;      // values that are kept to be shown
constexpr int64_t kFewRows = 10;      // fewer rows do not make an index, an id or an order
constexpr int64_t kFewTexts = 100;    // different texts of a category, at most; data.max_categories
constexpr int64_t kManyTexts = 1000;  // the same where each is there twenty times on average

bool IsAscii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; });
}

void Mix(uint64_t value, uint64_t* hash) { *hash = (*hash ^ value) * 0x9e3779b97f4a7c15 + (*hash >> 29); }

std::string Example(std::string_view text) { return std::string(text.substr(0, kMaxExample)); }

// PassengerId, customer_id, ID.
bool IsNamedAsId(const std::string& name) {
  const std::string lower = LowerCase(name);
  if (lower == "id" || lower == "uuid" || lower == "index") return true;
  if (lower.size() < 3 || lower.compare(lower.size() - 2, 2, "id") != 0) return lower.substr(0, 3) == "id_";
  const char before = lower[lower.size() - 3];
  return name[name.size() - 2] == 'I' || before == '_' || before == '-' || before == ' ' || before == '.';
}

// Texts that stand for missing values in files of other programs, in small letters.
bool IsKnownMarker(const std::string& text) {
  static const std::set<std::string> markers = {
      "\\n",     "none",  "-",      "--",        "---",           ".",      "..",      "...",
      "#n/a",    "#na",   "<na>",   "#null!",    "<null>",        "(null)", "[null]",  "unknown",
      "missing", "n.a.",  "n.d.",   "nil",       "nat",           "n/d",    "#value!", "#div/0!",
      "#ref!",   "#num!", "#name?", "undefined", "not available", "\u2013", "\u2014"};
  return markers.count(LowerCase(text)) > 0;
}

}  // namespace

std::string CommonSpelling(const std::string& text) {
  std::string common = LowerCase(text);
  common.erase(std::remove(common.begin(), common.end(), ' '), common.end());
  return common;
}

const char* TypeName(ColumnType type) {
  constexpr const char* kNames[] = {"empty", "number", "whole number", "date", "category", "text"};
  return kNames[static_cast<size_t>(type)];
}

FieldReading ColumnProfile::Reading() const {
  FieldReading reading;
  for (const ValueCount& marker : markers) reading.missing.push_back(marker.text);
  if (!number_format.empty()) reading.number = ParseNumberFormat(number_format);
  if (type == ColumnType::kDate) reading.date = date_form;
  return reading;
}

ColumnBuilder::ColumnBuilder(size_t max_distinct, Decimal decimal, std::optional<ColumnFormat> format,
                             const ColumnProfile* like)
    : max_distinct_(max_distinct),
      decimal_(decimal),
      format_(std::move(format)),
      are_dates_(like != nullptr && like->IsDate()),
      are_numbers_(like != nullptr && like->IsNumber()) {
  if (format_) reading_.number = format_->format;
  if (like == nullptr) return;
  for (const std::vector<ValueCount>* markers : {&like->markers, &like->no_days}) {
    for (const ValueCount& marker : *markers) {
      gaps_.missing.push_back(marker.text);
      if (const auto number = ExactNumber(marker.text)) gaps_.missing_numbers.push_back(*number);
    }
  }
}

// Whether the other table has such gaps; then they are markers here, too.
bool ColumnBuilder::IsGap(std::string_view text) {
  std::string plain;
  if (gaps_.is_plain() || IsMissing(text) || !PlainText(gaps_, text, decimal_, &plain).empty()) return false;
  std::vector<ValueCount>& markers = column_.markers;
  auto found = std::find_if(markers.begin(), markers.end(),
                            [&](const ValueCount& marker) { return marker.text == text; });
  if (found == markers.end()) found = markers.insert(found, {std::string(text)});
  ++found->rows;
  return true;
}

void ColumnBuilder::Add(const CsvField& field, bool trimmed) {
  const int64_t row = row_++;
  column_.padded = column_.padded || trimmed;
  if (IsMissing(field.text) || IsGap(field.text)) {
    ++column_.missing;
    in_order_ = false;
    Mix(1, &column_.values_hash);
    Mix(static_cast<uint64_t>(-1), &column_.pattern_hash);
    return;
  }
  if (column_.known++ == 0) column_.example = Example(field.text);
  CountValue(field.text);
  std::string plain;
  const std::optional<double> number = NumberOf(field.text, &plain);
  Mix(number ? std::hash<double>()(*number) : std::hash<std::string_view>()(field.text),
      &column_.values_hash);
  const bool is_word = field.text.find_first_of("0123456789") == std::string_view::npos;  // inf
  if (number && !is_word) {
    if (!plain.empty() && column_.spelled.empty()) column_.spelled = Example(field.text);
    column_.brackets = column_.brackets || (!plain.empty() && field.text.find('(') != std::string_view::npos);
    if (format_ && !format_->format.unit.empty()) {
      const std::optional<SpelledNumber> spelled = ReadNumber(field.text, format_->format.decimal);
      if (spelled && spelled->unit().empty()) column_.no_unit.Add(field.place, field.text);
    }
    AddNumber(*number, field, row);
  } else {
    AddText(field);
  }
}

void ColumnBuilder::EndFile(const std::string& path) {
  for (Faults* faults : {&column_.not_a_number, &column_.not_a_date, &column_.not_float, &column_.not_utf8,
                         &column_.no_unit}) {
    faults->EndFile(path);
  }
  for (auto& [text, faults] : texts_) faults.EndFile(path);
  other_texts_.EndFile(path);
  dates_.EndFile(path);
}

// *plain is the number as it would be plainly, if it is not.
std::optional<double> ColumnBuilder::NumberOf(std::string_view text, std::string* plain) const {
  const std::optional<double> number = ExactNumber(text, decimal_);
  if (!format_ || (number && format_->format.decimal == decimal_)) return number;
  return ExactNumber(PlainText(reading_, text, decimal_, plain), decimal_);
}

ColumnProfile ColumnBuilder::Finish(std::string name) {
  column_.name = std::move(name);
  FindMarkers();
  const auto count = static_cast<double>(finite_);
  if (finite_ > 0) column_.deviation = std::sqrt(squares_ / count);
  if (squares_ > 0) column_.skewness = std::sqrt(count) * cubes_ / std::pow(squares_, 1.5);
  if (squares_ > 0) column_.kurtosis = count * fourths_ / (squares_ * squares_) - 3;
  Faults texts = other_texts_;
  bool recur = false;  // texts
  for (const auto& [text, faults] : texts_) {
    const bool infinite = ExactNumber(text, decimal_).has_value();
    if (infinite) column_.numbers += faults.count;
    (infinite ? column_.not_float : texts).Add(faults);
    recur = recur || (!infinite && faults.count > 1 && faults.count * 100 >= column_.known);
  }
  column_.type = Type(recur);
  column_.not_a_number.Add(texts);
  column_.not_a_date.Add(texts);
  if (column_.IsNumber() || column_.type == ColumnType::kDate) FindDates();
  if (!column_.IsNumber()) column_.not_a_number = column_.not_float = {};
  if (column_.type != ColumnType::kDate) column_.not_a_date = {};
  if (column_.IsNumber() && !column_.spelled.empty()) {
    column_.number_format = format_->example;
  } else if (column_.IsNumber() && format_ && !format_->doubtful.empty()) {
    column_.other_format = format_->other_format;
    column_.spelled = format_->doubtful;
  }
  column_.maybe_thousands = format_ && format_->maybe_thousands;
  const bool is_text = column_.type == ColumnType::kCategory || column_.type == ColumnType::kText;
  if (format_ && is_text) column_.units = format_->units;
  column_.dates = dates_.texts();
  column_.mixed = (is_text && column_.dates * 2 >= column_.known) ||
                  (column_.type == ColumnType::kText && column_.numbers * 2 >= column_.known);
  KeepFrequent();
  Suspect();
  return std::move(column_);
}

// By the hash alone: two of 10,000 texts share one of 2^64 values hardly ever.
void ColumnBuilder::CountValue(std::string_view text) {
  if (column_.more_distinct) return;
  const size_t hash = std::hash<std::string_view>()(text);
  ValueCount& value = values_[hash];
  if (value.rows++ > 0) {
    repeats_ = true;
  } else if (values_.size() <= max_distinct_) {
    value.text = Example(text);
    value.number = column_.distinct++;
  } else {
    column_.more_distinct = true;
    values_ = {};
    return;
  }
  Mix(static_cast<uint64_t>(value.number), &column_.pattern_hash);
}

void ColumnBuilder::AddNumber(double number, const CsvField& field, int64_t row) {
  ++column_.numbers;
  if (!dates_.AddNumber(number, field)) column_.not_a_date.Add(field.place, field.text);
  if (!std::isfinite(number)) {
    column_.not_float.Add(field.place, field.text);
    return;
  }
  whole_ = whole_ && number == std::floor(number);
  const bool first = ++finite_ == 1;
  if (first) first_number_ = number;
  in_order_ = in_order_ && number == first_number_ + static_cast<double>(row);
  rises_ = rises_ && (first || number >= last_number_);
  falls_ = falls_ && (first || number <= last_number_);
  last_number_ = number;
  column_.min = first ? number : std::min(column_.min, number);
  column_.max = first ? number : std::max(column_.max, number);
  if (number == 0) ++column_.zeros;
  const double off = number - column_.mean;  // Welford's method, and its third and fourth moments
  const auto count = static_cast<double>(finite_);
  const double part = off / count, square = off * part * (count - 1);
  column_.mean += part;
  fourths_ +=
      square * part * part * (count * count - 3 * count + 3) + 6 * part * part * squares_ - 4 * part * cubes_;
  cubes_ += square * part * (count - 2) - 3 * part * squares_;
  squares_ += square;
}

void ColumnBuilder::AddText(const CsvField& field) {
  constexpr size_t kKeptTexts = 100;
  if (const auto found = texts_.find(field.text); found != texts_.end()) {  // no date, as before
    ++found->second.count;
  } else if (dates_.AddText(field)) {
    column_.not_a_number.Add(field.place, field.text);
  } else {
    Faults& faults = texts_.size() < kKeptTexts ? texts_[std::string(field.text)] : other_texts_;
    faults.Add(field.place, field.text);
  }
  if (!IsAscii(field.text) && !IsUtf8(field.text)) column_.not_utf8.Add(field.place, field.text);
}

// Texts that other programs write for missing values, and any one text without digits that comes again and
// again among different numbers. Among dates a few such texts, and what stands for no day. 1.#QNAN is such a
// text, too.
void ColumnBuilder::FindMarkers() {
  constexpr int64_t kRare = 20;  // dates are a part of this at least, gaps aside
  const int64_t values = std::max(column_.numbers, dates_.texts());
  int64_t no_days = 0, gaps = 0;  // gaps: what are no values among dates in any case
  for (const auto& [text, faults] : dates_.no_days()) no_days += faults.count;
  for (const auto& [text, faults] : texts_) gaps += IsKnownMarker(text) || IsDayZero(text) ? faults.count : 0;
  const int64_t dates = dates_.texts();
  const bool are_dates = dates > column_.numbers - no_days && dates * kRare >= column_.known - gaps - no_days;
  const size_t max_words = are_dates ? 3 : 1;
  const bool few_values = HasFewNumbers() && !are_dates_ && !are_numbers_;  // which may be names
  const auto rows_first = [](const ValueCount& a, const ValueCount& b) { return a.rows > b.rows; };
  std::vector<ValueCount> markers, words;
  for (const auto& [text, faults] : texts_) {
    const bool is_known = IsKnownMarker(text) || (are_dates && IsDayZero(text));
    if (is_known || faults.count > 1) (is_known ? markers : words).push_back({text, faults.count});
  }
  std::stable_sort(words.begin(), words.end(), rows_first);
  if (!texts_.empty()) {
    column_.odd = texts_.count(column_.example) > 0 ? column_.example
                  : words.empty()                   ? texts_.begin()->first
                                                    : words[0].text;
  }
  const bool few = words.size() <= max_words || words[max_words].rows * 5 <= words[max_words - 1].rows;
  for (const ValueCount& word : words) {
    const bool is_word =
        word.text.find('#') != word.text.npos || word.text.find_first_of("0123456789") == word.text.npos;
    const bool often = !are_dates || word.rows * 100 >= column_.known;
    const bool can_be = !few_values && (is_word || (are_dates && dates_.IsWrittenAsDate(word.text)));
    if (!few || &word - words.data() >= static_cast<ptrdiff_t>(max_words)) break;
    if (can_be && often && (are_dates || values * 3 >= column_.known) && word.text.size() < kMaxExample)
      markers.push_back(word);
  }
  for (const auto& [text, faults] : dates_.no_days()) {
    if (are_dates) markers.push_back({text, faults.count});
  }
  int64_t marked = 0;
  for (const ValueCount& marker : markers) marked += marker.rows;
  // Where dates are few, several words beside them are names, such as yes and no.
  const auto is_name = [](const ValueCount& marker) { return !IsKnownMarker(marker.text); };
  const bool names =
      are_dates && dates * 2 < column_.known && std::count_if(markers.begin(), markers.end(), is_name) > 1;
  const int64_t left = are_dates ? dates : values;
  const bool takes = !markers.empty() && !names && left > 0 && left * 10 >= (column_.known - marked) * 9;
  for (const auto& [text, faults] : dates_.no_days()) {
    if (takes && are_dates) {
      column_.numbers -= faults.count;
    } else {
      column_.not_a_date.Add(faults);
    }
  }
  if (!takes) return;
  for (const ValueCount& marker : markers) {
    texts_.erase(marker.text);
    if (!column_.more_distinct)
      column_.distinct -= static_cast<int64_t>(values_.erase(std::hash<std::string_view>()(marker.text)));
  }
  std::stable_sort(markers.begin(), markers.end(), rows_first);
  column_.markers.insert(column_.markers.end(), markers.begin(), markers.end());
  column_.missing += marked;
  column_.known -= marked;
  in_order_ = false;
  repeats_ = column_.more_distinct ? repeats_
                                   : std::any_of(values_.begin(), values_.end(),
                                                 [](const auto& value) { return value.second.rows > 1; });
}

// Numbers are dates if all are, but for those that stand for none. Of a few rows, which may be so by chance,
// the other table decides.
void ColumnBuilder::FindDates() {
  const int64_t few = are_dates_ ? 1 : kFewRows;
  column_.likely_form = dates_.LikelyForm(few, &column_.likely_dates);
  if (!column_.IsNumber()) {
    dates_.FindForm(&column_.date_form, &column_.other_date_form, &column_.not_a_date);
  } else if (column_.numbers == column_.known && (column_.distinct > 1 || are_dates_)) {
    column_.date_form = dates_.NumberForm(few);
    if (column_.date_form.empty()) return;
    for (const auto& [text, faults] : dates_.no_days()) column_.no_days.push_back({text, faults.count});
  }
}

// So few different ones may be names.
bool ColumnBuilder::HasFewNumbers() const {
  constexpr int64_t kFewNumbers = 10;
  return !column_.more_distinct && column_.distinct - static_cast<int64_t>(texts_.size()) <= kFewNumbers;
}

// `recur`: beside numbers a text comes again and again.
ColumnType ColumnBuilder::Type(bool recur) const {
  const auto are_most = [&](int64_t count) { return count * 10 >= column_.known * 9; };
  if (column_.known == 0) return ColumnType::kEmpty;
  const bool numbers = are_most(column_.numbers) && !(recur && HasFewNumbers());
  if (numbers || (are_numbers_ && column_.numbers * 2 > column_.known))
    return whole_ ? ColumnType::kWhole : ColumnType::kNumber;
  int64_t dates = dates_.texts();
  for (const auto& [text, faults] : texts_) dates += dates_.IsDayTooMany(text) ? faults.count : 0;
  if (dates_.texts() * 2 > column_.known && (are_most(dates) || are_dates_)) return ColumnType::kDate;
  const int64_t distinct = column_.distinct;
  const bool few = distinct <= kFewTexts && (distinct * 2 <= column_.known || column_.known < kFewRows);
  const bool often = distinct <= kManyTexts && distinct * 20 <= column_.known;
  return !column_.more_distinct && (few || often) ? ColumnType::kCategory : ColumnType::kText;
}

void ColumnBuilder::KeepFrequent() {
  for (auto& [hash, value] : values_) column_.frequent.push_back(std::move(value));
  std::sort(column_.frequent.begin(), column_.frequent.end(), [](const ValueCount& a, const ValueCount& b) {
    return a.rows != b.rows ? a.rows > b.rows : a.text < b.text;
  });
  if (!column_.frequent.empty()) column_.rarest = column_.frequent.back();
  if (column_.type == ColumnType::kCategory) FindSpellings();
  if (column_.IsNumber()) JoinNumbers();
  column_.frequent.resize(std::min(kFrequent, column_.frequent.size()));
  const auto has = [](const std::vector<ValueCount>& values, const std::string& text) {
    return std::any_of(values.begin(), values.end(),
                       [&](const ValueCount& value) { return value.text == text; });
  };
  const auto is_gap = [&](const std::string& text) {
    return has(column_.markers, text) || has(column_.no_days, text);
  };
  const auto value = std::find_if_not(column_.frequent.begin(), column_.frequent.end(),
                                      [&](const ValueCount& one) { return is_gap(one.text); });
  if (is_gap(column_.example) && value != column_.frequent.end()) column_.example = value->text;
}

void ColumnBuilder::FindSpellings() {
  std::map<std::string, std::vector<std::string>> spellings;
  for (const ValueCount& value : column_.frequent) {
    if (value.text.size() == kMaxExample) continue;  // it may go on
    spellings[CommonSpelling(value.text)].push_back(value.text);
  }
  for (const auto& [common, texts] : spellings) {
    if (texts.size() > 1) column_.spellings.push_back(fmt::format("{}", fmt::join(texts, "/")));
  }
}

// A double tells numbers of more than 15 digits apart no longer, which may be ids. A text that is no number
// is a fault, and no value.
void ColumnBuilder::JoinNumbers() {
  std::map<double, size_t> first;  // the most frequent text of each number
  std::vector<ValueCount> joined;
  for (ValueCount& value : column_.frequent) {
    std::string plain;
    const std::optional<double> number = NumberOf(value.text, &plain);
    if (!number) continue;
    if (!plain.empty()) value.text = std::move(plain);
    const bool is_exact = std::abs(*number) < 1e15 && value.text.size() < kMaxExample;
    const auto [same, is_new] =
        is_exact ? first.emplace(*number, joined.size()) : std::pair(first.end(), true);
    if (is_new) {
      joined.push_back(std::move(value));
      continue;
    }
    ValueCount& other = joined[same->second];
    other.rows += value.rows;
    if (value.text == other.text) continue;
    column_.respelled.push_back(fmt::format("{} -> {}", value.text, other.text));
  }
  const bool all = joined.size() == column_.frequent.size();
  column_.frequent = std::move(joined);
  if (all) return;
  column_.distinct = static_cast<int64_t>(column_.frequent.size());
  std::stable_sort(column_.frequent.begin(), column_.frequent.end(),
                   [](const ValueCount& a, const ValueCount& b) { return a.rows > b.rows; });
  column_.rarest = column_.frequent.back();
}

void ColumnBuilder::Suspect() {
  ColumnProfile& column = column_;
  const bool enough = column.known >= kFewRows;
  const bool numbers = column.IsNumber() && column.numbers == column.known;
  column.constant = column.distinct == 1 && column.missing == 0 && (numbers || !column.IsNumber());
  column.index = enough && numbers && whole_ && in_order_ && (first_number_ == 0 || first_number_ == 1);
  const bool has_values = column.IsDate() || !column.markers.empty() || column.mixed ||
                          !column.number_format.empty() || !column.units.empty();
  column.identifier = enough && !repeats_ && !column.index && !has_values &&
                      (column.type == ColumnType::kText || IsIdOfNumbers());
}

// Amounts may all differ too, so another sign is needed: the name, numbers without many gaps between them
// that are no years, or long ones that rise or fall by little.
bool ColumnBuilder::IsIdOfNumbers() const {
  if (column_.type != ColumnType::kWhole || column_.numbers != column_.known) return false;
  constexpr int64_t kManyRows = 20;  // in so many, drawn numbers without gaps would repeat
  const double span = column_.max - column_.min;
  const bool ordered = rises_ || falls_, years = column_.min >= 1500 && column_.max <= 2200;
  const bool dense = !years && span < 2.0 * static_cast<double>(column_.known);
  return IsNamedAsId(column_.name) || (dense && (ordered || column_.known >= kManyRows)) ||
         (ordered && column_.min >= 100000 && span * 10 < column_.min);
}

}  // namespace dtrain
