// Dates as tables write them, and the numbers that they become. Thread: any; free functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

// Returns the days since 1970-01-01 of 2024-01-31, 2024-01-31T09:30 or 2024-01-31 09:30:15.250+02:00 (ISO
// 8601); a time is a fraction of a day, in UTC. Unset: `text` is no such date. As a float32 a day of our time
// has steps of three minutes.
std::optional<double> DaysOfDate(std::string_view text);

// Returns a date that is written in `form`, one of DateForms(), as DaysOfDate() takes it: 07/04/24 9:30 PM as
// 2024-07-04T21:30. Behind YYYYMMDD ".0" may follow. Days and months may have one digit, and years two, from
// 1969 on. Unset: `text` is no such date.
std::optional<std::string> IsoDate(std::string_view text, std::string_view form);

}  // namespace dtrain
