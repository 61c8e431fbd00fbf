// Dates as tables write them (ISO 8601), and the numbers that they become. Thread: any; a free function.
#pragma once

#include <optional>
#include <string_view>

namespace dtrain {

// Returns the days since 1970-01-01 of 2024-01-31, 2024-01-31T09:30 or 2024-01-31 09:30:15.250+02:00; a time
// is a fraction of a day, in UTC. Unset: `text` is no such date. As a float32 a day of our time has steps of
// three minutes.
std::optional<double> DaysOfDate(std::string_view text);

}  // namespace dtrain
