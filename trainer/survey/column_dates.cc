#include "trainer/survey/column_dates.h"

#include <algorithm>
#include <cmath>

#include "trainer/config/parse.h"
#include "trainer/input/iso_date.h"

namespace dtrain {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

// Returns what a date and a day that is none have in common: the digits and letters of its three parts, as
// "2-2-4" of 31.1.2024 9:30. Empty: the text has fewer parts.
std::string Shape(std::string_view text) {
  constexpr size_t kParts = 3;
  std::string shape;
  for (size_t part = 0; part < kParts; ++part) {
    const size_t front = part == 0 ? 0 : std::min(text.find_first_not_of(" ,-/."), text.size());
    if (part > 0 && front == 0) return "";
    text.remove_prefix(front);
    const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
    const auto digits = static_cast<size_t>(end - text.begin());
    const size_t letters =
        digits > 0 ? 0
                   : static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsLetter) - text.begin());
    if (digits + letters == 0) return "";
    shape += digits == 0 ? 'a' : digits <= 2 ? '2' : static_cast<char>('0' + std::min<size_t>(digits, 9));
    text.remove_prefix(digits + letters);
  }
  return shape;
}

bool IsOnly(std::string_view text, char digit) {
  return !text.empty() && text.find_first_not_of(digit) == text.npos;
}

bool IsNoDay(std::string_view text) {
  constexpr size_t kDay = 8;
  const bool no_day = text.size() == kDay && (text.substr(4, 2) == "00" || text.substr(6) == "00");
  return IsOnly(text, '0') || (text.size() > 3 && IsOnly(text, '9')) || text == "-1" || no_day;
}

}  // namespace

bool IsDayZero(std::string_view text) {
  if (Shape(text).empty()) return false;
  const auto are = [&](char digit) {
    return std::all_of(text.begin(), text.end(), [&](char c) { return !IsDigit(c) || c == digit; });
  };
  const size_t day = std::min(text.find_first_of(" T:", text.find_last_of("-/.")), text.size());
  return are('0') || (text = text.substr(0, day), are('9'));
}

bool DateCounts::AddText(const CsvField& field) {
  constexpr int64_t kLooked = 100;
  const std::vector<std::string>& forms = DateForms();
  other_forms_.resize(forms.size());
  // Numbers and texts that came before do not count as looked at, so that dates are seen behind any number of
  // them.
  const bool first = looked_++ < kLooked;
  std::vector<size_t> others;
  for (size_t form = 0; form < forms.size(); ++form) {
    const bool can_be = (first || DatesOf(form) > 0) && forms[form].find('D') != std::string::npos;
    if (!can_be || !IsoDate(field.text, forms[form])) others.push_back(form);
  }
  if (others.size() == forms.size()) return false;
  if (dates_++ == 0) shape_ = Shape(field.text);
  if (DaysOfDate(field.text)) ++iso_dates_;
  for (const size_t form : others) other_forms_[form].Add(field.place, field.text);
  return true;
}

bool DateCounts::AddNumber(double number, const CsvField& field) {
  constexpr size_t kKept = 4;
  const std::string_view text = field.text;
  if (IsNoDay(text)) {
    const auto found = no_days_.find(text);
    if (found != no_days_.end() || no_days_.size() < kKept) {
      (found != no_days_.end() ? found->second : no_days_[std::string(text)]).Add(field.place, text);
      return true;
    }
  }
  ++numbers_;
  if ((text.size() == 8 || text.size() == 14) && IsoDate(text, "YYYYMMDD")) ++packed_;
  whole_ = whole_ && number == std::floor(number);
  min_ = std::min(min_, number);
  max_ = std::max(max_, number);
  return false;
}

void DateCounts::EndFile(const std::string& path) {
  for (Faults& faults : other_forms_) faults.EndFile(path);
  for (auto& [text, faults] : no_days_) faults.EndFile(path);
}

// Of the forms that most dates have the first.
size_t DateCounts::BestForm() const {
  const auto fewer = [](const Faults& a, const Faults& b) { return a.count < b.count; };
  return static_cast<size_t>(std::min_element(other_forms_.begin(), other_forms_.end(), fewer) -
                             other_forms_.begin());
}

void DateCounts::FindForm(std::string* form, std::string* other, Faults* faults) const {
  if (dates_ == 0) return;
  const std::vector<std::string>& forms = DateForms();
  const size_t best = BestForm();
  faults->Add(other_forms_[best]);
  if (iso_dates_ == DatesOf(best)) return;
  *form = forms[best];
  for (size_t i = best + 1; i < forms.size(); ++i) {
    if (DatesOf(i) == DatesOf(best)) *other = forms[i];
  }
}

bool DateCounts::IsWrittenAsDate(std::string_view text) const {
  return !shape_.empty() && Shape(text) == shape_;
}

std::string DateCounts::NumberForm() const {
  const auto within = [&](double unit) { return min_ >= 631152000 * unit && max_ <= 2208988800 * unit; };
  int64_t no_days = 0;
  for (const auto& [text, faults] : no_days_) no_days += faults.count;
  if (numbers_ == 0 || no_days > numbers_ || !whole_) return "";
  if (packed_ == numbers_) return "YYYYMMDD";
  return within(1) ? "seconds" : within(1e3) ? "milliseconds" : within(1e6) ? "microseconds" : "";
}

}  // namespace dtrain
