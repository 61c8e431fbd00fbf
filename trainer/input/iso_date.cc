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

// The days to the first of a month. Counts from March on, so that the leap day is the last of a year. Month
// 13 is the next January.
int64_t DaysSince1970(int64_t year, int64_t month) {
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t m = month <= 2 ? month + 9 : month - 3;
  const int64_t before = y >= 0 ? y * 365 + y / 4 - y / 100 + y / 400 : -366;
  return before + (153 * m + 2) / 5 - 719468;
}

// Returns the seconds behind the decimal point, which may be left out.
std::optional<double> TakeFraction(std::string_view* text) {
  if (!Take(text, '.')) return 0;
  double fraction = 0, unit = 0.1;
  for (; !text->empty() && text->front() >= '0' && text->front() <= '9'; text->remove_prefix(1)) {
    fraction += unit * (text->front() - '0');
    unit /= 10;
  }
  return unit == 0.1 ? std::nullopt : std::optional<double>(fraction);
}

// Returns the minutes of an offset, Z or +02:00 or +0200 or +02; 0 where there is none.
std::optional<int64_t> TakeOffset(std::string_view* text) {
  if (text->empty() || Take(text, 'Z')) return 0;
  const int64_t sign = text->front() == '-' ? -1 : 1;
  if (!Take(text, '-') && !Take(text, '+')) return std::nullopt;
  const std::optional<int64_t> hours = TakeNumber(text, 2, 0, 23);
  if (!hours) return std::nullopt;
  const bool more = Take(text, ':') || !text->empty();
  const std::optional<int64_t> minutes = more ? TakeNumber(text, 2, 0, 59) : 0;
  if (!minutes) return std::nullopt;
  return sign * (*hours * 60 + *minutes);
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
  const int64_t first = DaysSince1970(*year, *month);
  const std::optional<int64_t> day = TakeNumber(&text, 2, 1, DaysSince1970(*year, *month + 1) - first);
  if (!day) return std::nullopt;
  const auto days = static_cast<double>(first + *day - 1);
  if (text.empty()) return days;
  if (!Take(&text, 'T') && !Take(&text, ' ')) return std::nullopt;
  const std::optional<double> seconds = TakeTime(&text);
  if (!seconds || !text.empty()) return std::nullopt;
  return days + *seconds / 86400;
}

}  // namespace dtrain
