#include "trainer/input/iso_date.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes `word` from the front; false: another text stands there.
bool Take(std::string_view* text, std::string_view word) {
  if (text->substr(0, word.size()) != word) return false;
  text->remove_prefix(word.size());
  return true;
}

// Takes `min` to `max` digits from the front; -1: there are fewer, and nothing is taken.
int64_t TakeDigits(std::string_view* text, size_t min, size_t max) {
  size_t size = 0;
  int64_t number = 0;
  for (; size < max && size < text->size() && IsDigit((*text)[size]); ++size)
    number = 10 * number + ((*text)[size] - '0');
  if (size < min) return -1;
  text->remove_prefix(size);
  return number;
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

// Returns the seconds of a time of day, 09:30:15 or 093015, less its offset from UTC: Z, UTC, GMT, +02:00,
// +0200 or +02, or none.
std::optional<double> SecondsOf(std::string_view text) {
  int64_t second = 0, zone_hour = 0, zone_minute = 0;
  const int64_t hour = TakeDigits(&text, 2, 2);
  const bool colons = Take(&text, ":");
  const int64_t minute = TakeDigits(&text, 2, 2);
  std::optional<double> fraction = 0;
  const bool more = colons ? Take(&text, ":") : !text.empty() && IsDigit(text.front());
  if (more && (second = TakeDigits(&text, 2, 2)) >= 0 && Take(&text, ".")) fraction = TakeFraction(&text);
  const int64_t sign = text.substr(0, 1) == "-" ? -1 : 1;
  if (Take(&text, "+") || Take(&text, "-")) {
    zone_hour = TakeDigits(&text, 2, 2);
    if (Take(&text, ":") || !text.empty()) zone_minute = TakeDigits(&text, 2, 2);
  } else {
    Take(&text, " ");
    Take(&text, "Z") || Take(&text, "UTC") || Take(&text, "GMT");
  }
  const auto within = [](int64_t number, int64_t max) { return number >= 0 && number <= max; };
  const bool good = within(hour, 24) && within(minute, 59) && within(second, 60) && within(zone_hour, 23) &&
                    within(zone_minute, 59);
  if (!text.empty() || !fraction || !good) return std::nullopt;
  const double seconds =
      static_cast<double>(hour * 3600 + minute * 60) + (static_cast<double>(second) + *fraction);
  return seconds - static_cast<double>(sign * (zone_hour * 60 + zone_minute) * 60);
}

// Takes the name of a month, in English and at least three letters of it; -1: there is none.
int64_t TakeMonth(std::string_view* text) {
  static constexpr std::string_view kMonths[] = {"january",   "february", "march",    "april",
                                                 "may",       "june",     "july",     "august",
                                                 "september", "october",  "november", "december"};
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  size_t letters = 0;
  while (letters < text->size() && is_letter((*text)[letters])) ++letters;
  const std::string name = LowerCase(std::string(text->substr(0, letters)));
  text->remove_prefix(letters);
  for (size_t month = 0; letters >= 3 && month < std::size(kMonths); ++month) {
    if (kMonths[month].substr(0, letters) == name) return static_cast<int64_t>(month) + 1;
  }
  return -1;
}

// Two digits, behind day and month, are a year of 1969 to 2068.
int64_t TakeYear(std::string_view* text, bool may_be_short) {
  const size_t size = text->size();
  const int64_t year = TakeDigits(text, 1, 4);
  const size_t digits = size - text->size();
  if (digits == 2 && may_be_short) return year + (year < 69 ? 2000 : 1900);
  return digits == 4 ? year : -1;
}

// Returns the time behind a date as ISO 8601 has it: " 9:30 PM" as "T21:30". What is wrong with it is seen
// there.
std::string IsoTime(std::string_view text) {
  if (text.empty()) return "";
  text.remove_prefix(std::min(text.find_first_not_of("T ,"), text.size()));
  const std::string lower = LowerCase(std::string(text));
  bool morning = false, evening = false;
  for (const std::string_view half : {"am", "a.m.", "pm", "p.m."}) {
    if (lower.size() < half.size() || lower.compare(lower.size() - half.size(), half.size(), half) != 0)
      continue;
    text.remove_suffix(half.size());
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    (half.front() == 'a' ? morning : evening) = true;
  }
  int64_t hour = TakeDigits(&text, 1, 2);
  if ((morning || evening) && (hour < 1 || hour > 12)) return "T";
  if (morning || evening) hour = hour % 12 + (evening ? 12 : 0);
  const bool whole = text.empty() && (morning || evening);
  return fmt::format("T{:02}{}", hour, whole ? ":00" : std::string(text));
}

std::optional<std::string> IsoOfEpoch(std::string_view text, double units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good =
      error == std::errc() && end == text.data() + text.size() && std::abs(number / units) < 1e14;
  if (!good || text.empty()) return std::nullopt;
  const double seconds = number / units, whole = std::floor(seconds);
  const auto time = static_cast<time_t>(whole);
  tm utc{};
  if (gmtime_r(&time, &utc) == nullptr || utc.tm_year + 1900 < 0 || utc.tm_year + 1900 > 9999)
    return std::nullopt;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:09.6f}", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec + (seconds - whole));
}

}  // namespace

std::optional<double> DaysOfDate(std::string_view text) {
  const int64_t year = TakeDigits(&text, 4, 4), month = Take(&text, "-") ? TakeDigits(&text, 2, 2) : -1,
                day = Take(&text, "-") ? TakeDigits(&text, 2, 2) : -1;
  if (year < 0 || month < 1 || month > 12) return std::nullopt;
  const int64_t first = DaysSince1970(year, month);
  if (day < 1 || day > DaysSince1970(year, month + 1) - first) return std::nullopt;
  const auto days = static_cast<double>(first + day - 1);
  if (text.empty()) return days;
  if (!Take(&text, "T") && !Take(&text, " ")) return std::nullopt;
  const std::optional<double> seconds = SecondsOf(text);
  return seconds ? std::optional<double>(days + *seconds / 86400) : std::nullopt;
}

std::optional<std::string> IsoDate(std::string_view text, std::string_view form) {
  if (form == "seconds") return IsoOfEpoch(text, 1);
  if (form == "milliseconds") return IsoOfEpoch(text, 1e3);
  if (form == "microseconds") return IsoOfEpoch(text, 1e6);
  constexpr size_t kTimeDigits = 6;  // of 20240131093015
  constexpr std::string_view kBetween = " ,-/.";
  const bool packed = form == "YYYYMMDD";
  const bool by_name = form.find("MON") != form.npos;  // then what stands between the parts is free
  int64_t year = 0, month = 0, day = 0;
  while (!form.empty()) {
    if (Take(&form, "YYYY")) {
      year = TakeYear(&text, day > 0);
    } else if (Take(&form, "MON")) {
      month = TakeMonth(&text);
    } else if (Take(&form, "MM")) {
      month = TakeDigits(&text, 1, 2);
    } else if (Take(&form, "DD")) {
      day = TakeDigits(&text, 1, 2);
    } else {
      const size_t front = text.find_first_not_of(by_name ? kBetween : form.substr(0, 1));
      if (front == 0 || front == text.npos || (!by_name && front > 1)) return std::nullopt;
      text.remove_prefix(front);
      form.remove_prefix(by_name ? form.find_first_not_of(kBetween) : 1);
    }
    if (year < 0 || month < 0 || day < 0) return std::nullopt;
  }
  if (packed && text == ".0") text = {};
  const bool is_time = text.empty() || std::string_view("T ,").find(text.front()) != text.npos;
  if (!is_time && !(packed && text.size() == kTimeDigits)) return std::nullopt;
  std::string iso = fmt::format("{:04}-{:02}-{:02}{}", year, month, day, IsoTime(text));
  return DaysOfDate(iso) ? std::optional(std::move(iso)) : std::nullopt;
}

}  // namespace dtrain
