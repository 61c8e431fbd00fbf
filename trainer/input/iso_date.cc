#include "trainer/input/iso_date.h"

#include <cstdint>

namespace dtrain {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes a text like `shape` from the front, in which each 0 is any digit. Its numbers go to `numbers`. False:
// another text stands there, and nothing is taken.
bool Take(std::string_view* text, std::string_view shape, int64_t* numbers = nullptr) {
  if (text->size() < shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const char c = (*text)[i];
    if (shape[i] == '0' ? !IsDigit(c) : c != shape[i]) return false;
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != '0') continue;
    int64_t number = 0;
    for (; i < shape.size() && shape[i] == '0'; ++i) number = 10 * number + ((*text)[i] - '0');
    *numbers++ = number;
  }
  text->remove_prefix(shape.size());
  return true;
}

// The days to the first of a month; month 13 is the next January. Counts from March on, so that the leap day
// is the last of a year.
int64_t DaysSince1970(int64_t year, int64_t month) {
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t m = month <= 2 ? month + 9 : month - 3;
  const int64_t before = y >= 0 ? y * 365 + y / 4 - y / 100 + y / 400 : -366;
  return before + (153 * m + 2) / 5 - 719468;
}

// Takes the digits behind the decimal point. Unset: there are none.
std::optional<double> TakeFraction(std::string_view* text) {
  if (text->empty() || !IsDigit(text->front())) return std::nullopt;
  double fraction = 0, unit = 0.1;
  for (; !text->empty() && IsDigit(text->front()); text->remove_prefix(1)) {
    fraction += unit * (text->front() - '0');
    unit /= 10;
  }
  return fraction;
}

// Returns the seconds of a time of day, less its offset from UTC: Z or +02:00 or +0200 or +02, or none.
std::optional<double> SecondsOf(std::string_view text) {
  int64_t time[] = {0, 0, 0}, offset[] = {0, 0};  // hours, minutes, seconds
  if (!Take(&text, "00:00", time)) return std::nullopt;
  std::optional<double> fraction = 0;
  if (Take(&text, ":00", &time[2]) && Take(&text, ".")) fraction = TakeFraction(&text);
  const int64_t sign = !text.empty() && text.front() == '-' ? -1 : 1;
  if (Take(&text, "+") || Take(&text, "-")) {
    if (!Take(&text, "00", offset)) return std::nullopt;
    if ((Take(&text, ":") || !text.empty()) && !Take(&text, "00", &offset[1])) return std::nullopt;
  } else {
    Take(&text, "Z");
  }
  const bool good = time[0] <= 24 && time[1] <= 59 && time[2] <= 60 && offset[0] <= 23 && offset[1] <= 59;
  if (!text.empty() || !fraction || !good) return std::nullopt;
  const double seconds =
      static_cast<double>(time[0] * 3600 + time[1] * 60) + (static_cast<double>(time[2]) + *fraction);
  return seconds - static_cast<double>(sign * (offset[0] * 60 + offset[1]) * 60);
}

}  // namespace

std::optional<double> DaysOfDate(std::string_view text) {
  int64_t date[3];
  if (!Take(&text, "0000-00-00", date)) return std::nullopt;
  const auto [year, month, day] = date;
  if (month < 1 || month > 12) return std::nullopt;
  const int64_t first = DaysSince1970(year, month);
  if (day < 1 || day > DaysSince1970(year, month + 1) - first) return std::nullopt;
  const auto days = static_cast<double>(first + day - 1);
  if (text.empty()) return days;
  if (!Take(&text, "T") && !Take(&text, " ")) return std::nullopt;
  const std::optional<double> seconds = SecondsOf(text);
  return seconds ? std::optional<double>(days + *seconds / 86400) : std::nullopt;
}

}  // namespace dtrain
