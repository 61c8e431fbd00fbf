#include "trainer/input/iso_date.h"

#include <cstdint>

namespace dtrain {
namespace {

// Takes `digits` digits from the front. Unset: other bytes stand there, or the number is beyond [min, max].
std::optional<int64_t> TakeNumber(std::string_view* text, size_t digits, int64_t min, int64_t max) {
  if (text->size() < digits) return std::nullopt;
  int64_t number = 0;
  for (size_t i = 0; i < digits; ++i) {
    const char c = (*text)[i];
    if (c < '0' || c > '9') return std::nullopt;
    number = 10 * number + (c - '0');
  }
  text->remove_prefix(digits);
  if (number < min || number > max) return std::nullopt;
  return number;
}

bool Take(std::string_view* text, char c) {
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

bool IsLeap(int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int64_t DaysOfMonth(int64_t year, int64_t month) {
  constexpr int64_t kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kDays[month - 1] + (month == 2 && IsLeap(year) ? 1 : 0);
}

// Counts from March on, so that the leap day is the last of a year.
int64_t DaysSince1970(int64_t year, int64_t month, int64_t day) {
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t m = month <= 2 ? month + 9 : month - 3;
  const int64_t before = y >= 0 ? y * 365 + y / 4 - y / 100 + y / 400 : -366;
  return before + (153 * m + 2) / 5 + day - 1 - 719468;
}

// Returns the seconds behind the decimal point, which may be left out.
std::optional<double> TakeFraction(std::string_view* text) {
  if (!Take(text, '.')) return 0;
  double fraction = 0, unit = 0.1;
  size_t digits = 0;
  for (; !text->empty() && text->front() >= '0' && text->front() <= '9'; text->remove_prefix(1)) {
    fraction += unit * (text->front() - '0');
    unit /= 10;
    ++digits;
  }
  return digits == 0 ? std::nullopt : std::optional<double>(fraction);
}

// Returns the minutes of an offset, Z or +02:00 or +0200 or +02; 0 where there is none.
std::optional<int64_t> TakeOffset(std::string_view* text) {
  if (text->empty() || Take(text, 'Z')) return 0;
  const bool minus = text->front() == '-';
  if (!Take(text, '-') && !Take(text, '+')) return std::nullopt;
  const std::optional<int64_t> hours = TakeNumber(text, 2, 0, 23);
  if (!hours) return std::nullopt;
  const bool more = Take(text, ':') || !text->empty();
  const std::optional<int64_t> minutes = more ? TakeNumber(text, 2, 0, 59) : 0;
  if (!minutes) return std::nullopt;
  return (minus ? -1 : 1) * (*hours * 60 + *minutes);
}

// Returns the seconds of a time of day, less its offset from UTC.
std::optional<double> TakeTime(std::string_view* text) {
  const std::optional<int64_t> hour = TakeNumber(text, 2, 0, 24);
  if (!hour || !Take(text, ':')) return std::nullopt;
  const std::optional<int64_t> minute = TakeNumber(text, 2, 0, 59);
  if (!minute) return std::nullopt;
  double seconds = static_cast<double>(*hour * 3600 + *minute * 60);
  if (Take(text, ':')) {
    const std::optional<int64_t> second = TakeNumber(text, 2, 0, 60);
    const std::optional<double> fraction = second ? TakeFraction(text) : std::nullopt;
    if (!fraction) return std::nullopt;
    seconds += static_cast<double>(*second) + *fraction;
  }
  const std::optional<int64_t> offset = TakeOffset(text);
  if (!offset) return std::nullopt;
  return seconds - static_cast<double>(*offset * 60);
}

}  // namespace

std::optional<double> DaysOfDate(std::string_view text) {
  const std::optional<int64_t> year = TakeNumber(&text, 4, 0, 9999);
  if (!year || !Take(&text, '-')) return std::nullopt;
  const std::optional<int64_t> month = TakeNumber(&text, 2, 1, 12);
  if (!month || !Take(&text, '-')) return std::nullopt;
  const std::optional<int64_t> day = TakeNumber(&text, 2, 1, DaysOfMonth(*year, *month));
  if (!day) return std::nullopt;
  const auto days = static_cast<double>(DaysSince1970(*year, *month, *day));
  if (text.empty()) return days;
  if (!Take(&text, 'T') && !Take(&text, ' ')) return std::nullopt;
  const std::optional<double> seconds = TakeTime(&text);
  if (!seconds || !text.empty()) return std::nullopt;
  return days + *seconds / 86400;
}

}  // namespace dtrain
