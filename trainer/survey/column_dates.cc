#include "trainer/survey/column_dates.h"

#include <algorithm>
#include <cmath>

#include "trainer/config/item_text.h"
#include "trainer/input/iso_date.h"

namespace dtrain {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

// The digits or letters of the three parts that a date begins with; empty: it has fewer.
using DateParts = std::vector<std::string_view>;

DateParts PartsOf(std::string_view text) {
  constexpr size_t kParts = 3;
  DateParts parts;
  while (parts.size() < kParts) {
    const size_t front = parts.empty() ? 0 : std::min(text.find_first_not_of(" ,-/."), text.size());
    if (!parts.empty() && front == 0) return {};
    text.remove_prefix(front);
    const bool digits = !text.empty() && IsDigit(text[0]);
    const auto end = std::find_if_not(text.begin(), text.end(), digits ? IsDigit : IsLetter);
    const auto size = static_cast<size_t>(end - text.begin());
    if (size == 0) return {};
    parts.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return parts;
}

// Returns what dates and days that are none have in common, "2-2-4" of 31.1.2024 9:30 by its digits.
std::string Shape(std::string_view text) {
  std::string shape;
  for (const std::string_view part : PartsOf(text)) {
    shape += IsLetter(part[0])  ? 'a'
             : part.size() <= 2 ? '2'
                                : static_cast<char>('0' + std::min<size_t>(part.size(), 9));
  }
  return shape;
}

bool IsOnly(std::string_view text, char digit) {
  return !text.empty() && text.find_first_not_of(digit) == text.npos;
}

constexpr const char* kNumberForms[] = {"YYYYMMDD", "seconds", "milliseconds", "microseconds"};
constexpr double kFirstSecond = 631152000, kLastSecond = 2208988800;  // since 1970, of 1990 and of 2040
constexpr size_t kFewOthers = 3;

bool IsFarYear(std::string_view year) { return year == "0001" || year == "9999"; }

// Programs that have gaps among floats alone write 20240131.0.
std::string_view WithoutPoint(std::string_view text) {
  const bool has_point = text.size() > 2 && text.substr(text.size() - 2) == ".0";
  return has_point ? text.substr(0, text.size() - 2) : text;
}

bool IsNoDay(std::string_view text) {
  const bool packed =
      (text.size() == 8 || text.size() == 14) && std::all_of(text.begin(), text.end(), IsDigit);
  const bool no_day =
      packed && (text.substr(4, 2) == "00" || text.substr(6, 2) == "00" || IsFarYear(text.substr(0, 4)));
  return IsOnly(text, '0') || (text.size() > 3 && IsOnly(text, '9')) || text == "-1" || no_day;
}

}  // namespace

bool IsDayZero(std::string_view text) {
  if (text.find("00") == text.npos && text.find("99") == text.npos) return false;  // as most texts
  const DateParts parts = PartsOf(text);
  const auto are = [&](char digit) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return IsLetter(part[0]) || IsOnly(part, digit); });
  };
  const auto has_digits = [](std::string_view part) { return IsDigit(part[0]); };
  return std::any_of(parts.begin(), parts.end(), has_digits) &&
         (are('0') || are('9') || std::any_of(parts.begin(), parts.end(), IsFarYear));
}

bool DateCounts::AddText(const CsvField& field) {
  constexpr int64_t kLooked = 100;
  if (IsDayZero(field.text)) return false;
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
  const std::string_view text = WithoutPoint(field.text);
  if (IsNoDay(text)) {
    const auto found = no_days_.find(field.text);
    if (found != no_days_.end() || no_days_.size() < kKept) {
      Faults& faults = found != no_days_.end() ? found->second : no_days_[std::string(field.text)];
      faults.Add(field.place, field.text);
      return true;
    }
  }
  ++numbers_;
  if ((text.size() == 8 || text.size() == 14) && IsoDate(text, "YYYYMMDD")) ++of_forms_[0];
  bool is_epoch = false;
  for (size_t form = 1; form < of_forms_.size() && number == std::floor(number); ++form) {
    const double unit = form == 1 ? 1 : form == 2 ? 1e3 : 1e6;  // in a second
    if (number < kFirstSecond * unit || number > kLastSecond * unit) continue;
    ++of_forms_[form];
    is_epoch = true;
  }
  if (!is_epoch && others_.size() <= kFewOthers) others_.insert(number);
  return false;
}

void DateCounts::EndFile(const std::string& path) {
  for (Faults& faults : other_forms_) faults.EndFile(path);
  for (auto& [text, faults] : no_days_) faults.EndFile(path);
}

// The first of the forms that most dates have.
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

bool DateCounts::IsDayTooMany(std::string_view text) const {
  if (!IsWrittenAsDate(text)) return false;
  std::string sooner(text);
  for (const std::string_view part : PartsOf(text)) {
    if (part == "29" || part == "30" || part == "31")
      sooner.replace(static_cast<size_t>(part.data() - text.data()), part.size(), "28");
  }
  return IsoDate(sooner, DateForms()[BestForm()]).has_value();
}

std::string DateCounts::NumberForm(int64_t few) const {
  for (size_t form = 0; form < of_forms_.size() && numbers_ >= std::max<int64_t>(few, 1); ++form) {
    if (of_forms_[form] == numbers_) return kNumberForms[form];
  }
  return "";
}

std::string DateCounts::LikelyForm(int64_t few, int64_t* count) const {
  const size_t form =
      static_cast<size_t>(std::max_element(of_forms_.begin(), of_forms_.end()) - of_forms_.begin());
  *count = of_forms_[form];
  const bool likely =
      form == 0 ? *count * 5 >= numbers_ : *count * 2 > numbers_ && others_.size() <= kFewOthers;
  return *count >= few && likely ? kNumberForms[form] : "";
}

}  // namespace dtrain
