#include "trainer/survey/column_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "trainer/config/user_text.h"
#include "trainer/input/iso_date.h"

namespace dtrain {
namespace {

constexpr size_t kMaxExample = 40;    // bytes of a text that is kept to be shown
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

}  // namespace

void Faults::Add(TextPlace place, std::string_view text) {
  if (count++ > 0) return;
  first = place;
  example = Example(text);
}

std::string CommonSpelling(const std::string& text) {
  std::string common = LowerCase(text);
  common.erase(std::remove(common.begin(), common.end(), ' '), common.end());
  return common;
}

const char* TypeName(ColumnType type) {
  constexpr const char* kNames[] = {"empty", "number", "whole number", "date", "category", "text"};
  return kNames[static_cast<size_t>(type)];
}

void ColumnBuilder::Add(const CsvField& field, bool trimmed) {
  const int64_t row = row_++;
  column_.padded = column_.padded || trimmed;
  if (IsMissing(field.text)) {
    ++column_.missing;
    in_order_ = false;
    Mix(1, &column_.values_hash);
    Mix(static_cast<uint64_t>(-1), &column_.pattern_hash);
    return;
  }
  if (column_.known++ == 0) column_.example = Example(field.text);
  CountValue(field.text);
  const std::optional<double> number = ExactNumber(field.text, decimal_);
  Mix(number ? std::hash<double>()(*number) : std::hash<std::string_view>()(field.text),
      &column_.values_hash);
  if (number) {
    AddNumber(*number, field, row);
  } else {
    AddText(field);
  }
}

void ColumnBuilder::EndFile(const std::string& path) {
  for (Faults* faults : {&column_.not_a_number, &column_.not_a_date, &column_.not_float, &column_.not_utf8})
    faults->EndFile(path);
}

ColumnProfile ColumnBuilder::Finish(std::string name) {
  column_.name = std::move(name);
  const auto count = static_cast<double>(finite_);
  if (finite_ > 0) column_.deviation = std::sqrt(squares_ / count);
  if (squares_ > 0) column_.skewness = std::sqrt(count) * cubes_ / std::pow(squares_, 1.5);
  column_.type = Type();
  if (!column_.IsNumber()) column_.not_a_number = column_.not_float = {};
  if (column_.type != ColumnType::kDate) column_.not_a_date = {};
  KeepFrequent();
  Suspect();
  return std::move(column_);
}

// By the hash alone: two of 10,000 texts share one of 2^64 values hardly ever.
void ColumnBuilder::CountValue(std::string_view text) {
  if (column_.more_distinct) return;
  const size_t hash = std::hash<std::string_view>()(text);
  if (column_.known == 1 || hash != last_hash_) ++runs_;
  last_hash_ = hash;
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
  column_.not_a_date.Add(field.place, field.text);
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
  const double off = number - column_.mean;  // Welford's method, and its third moment
  const auto count = static_cast<double>(finite_);
  const double part = off / count, square = off * part * (count - 1);
  column_.mean += part;
  cubes_ += square * part * (count - 2) - 3 * part * squares_;
  squares_ += square;
}

void ColumnBuilder::AddText(const CsvField& field) {
  column_.not_a_number.Add(field.place, field.text);
  if (DaysOfDate(field.text)) {
    ++dates_;
  } else {
    column_.not_a_date.Add(field.place, field.text);
  }
  if (!IsAscii(field.text) && !IsUtf8(field.text)) column_.not_utf8.Add(field.place, field.text);
}

ColumnType ColumnBuilder::Type() const {
  const auto are_most = [&](int64_t count) { return count * 10 >= column_.known * 9; };
  if (column_.known == 0) return ColumnType::kEmpty;
  if (are_most(column_.numbers)) return whole_ ? ColumnType::kWhole : ColumnType::kNumber;
  if (are_most(dates_)) return ColumnType::kDate;
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

// A double tells numbers of more than 15 digits apart no longer, which may be ids.
void ColumnBuilder::JoinNumbers() {
  std::map<double, size_t> first;  // the most frequent text of each number
  std::vector<ValueCount> joined;
  for (ValueCount& value : column_.frequent) {
    const std::optional<double> number = ExactNumber(value.text, decimal_);
    const bool is_exact = number && std::abs(*number) < 1e15 && value.text.size() < kMaxExample;
    const auto [same, is_new] =
        is_exact ? first.emplace(*number, joined.size()) : std::pair(first.end(), true);
    if (is_new) {
      joined.push_back(std::move(value));
      continue;
    }
    ValueCount& other = joined[same->second];
    other.rows += value.rows;
    column_.respelled.push_back(fmt::format("{} -> {}", value.text, other.text));
  }
  column_.frequent = std::move(joined);
  if (column_.respelled.empty()) return;
  column_.distinct = static_cast<int64_t>(column_.frequent.size());
  std::stable_sort(column_.frequent.begin(), column_.frequent.end(),
                   [](const ValueCount& a, const ValueCount& b) { return a.rows > b.rows; });
  column_.rarest = column_.frequent.back();
}

void ColumnBuilder::Suspect() {
  ColumnProfile& column = column_;
  column.constant = column.distinct == 1 && column.missing == 0;
  const bool enough = column.known >= kFewRows;
  const bool numbers = column.IsNumber() && column.numbers == column.known;
  column.index = enough && numbers && whole_ && in_order_ && (first_number_ == 0 || first_number_ == 1);
  column.identifier =
      enough && !repeats_ && !column.index && (column.type == ColumnType::kText || IsIdOfNumbers());
  const bool grouped = !column_.more_distinct && runs_ == column.distinct && column.known > column.distinct;
  const bool ordered = numbers && (rises_ || falls_);
  column.sorted = enough && column.distinct > 1 && (grouped || ordered);
}

// Amounts of few rows all differ too, so another sign is needed: the name, numbers without many gaps
// between them that are no years, or long numbers of equal length.
bool ColumnBuilder::IsIdOfNumbers() const {
  if (column_.type != ColumnType::kWhole || column_.numbers != column_.known) return false;
  const bool years = column_.min >= 1500 && column_.max <= 2200;
  const bool dense = !years && column_.max - column_.min < 2.0 * static_cast<double>(column_.known);
  const bool alike =
      column_.min >= 100000 && std::floor(std::log10(column_.min)) == std::floor(std::log10(column_.max));
  return IsNamedAsId(column_.name) || dense || alike;
}

}  // namespace dtrain
