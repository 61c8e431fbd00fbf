#include "base/clock.h"

#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace dtrain {

int64_t WallNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string WallText(int64_t wall_nanos) {
  const time_t seconds = static_cast<time_t>(wall_nanos / 1000000000);
  tm parts{};
  localtime_r(&seconds, &parts);
  const long offset = parts.tm_gmtoff / 60;  // in minutes east of UTC
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}{}{:02}:{:02}", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     wall_nanos / 1000000 % 1000, offset < 0 ? '-' : '+', std::abs(offset) / 60,
                     std::abs(offset) % 60);
}

std::string TimeOfDay(TimePoint at) {
  const std::string text = WallText(WallNanos() + std::chrono::nanoseconds(at - Clock::now()).count());
  return text.substr(text.find('T') + 1, std::string("23:59:59").size());
}

int64_t ProcessStartWallNanos() {
  // Field 22 of /proc/self/stat: start time in ticks since boot. The command name (field 2) may hold
  // spaces, so fields are counted from the last parenthesis.
  std::ifstream stat("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return WallNanos();
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) {
    if (!(fields >> field)) return WallNanos();
  }
  const int64_t since_boot = std::stoll(field) * (1000000000 / sysconf(_SC_CLK_TCK));
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  const int64_t uptime = boot.tv_sec * int64_t{1000000000} + boot.tv_nsec;
  return WallNanos() - (uptime - since_boot);
}

}  // namespace dtrain
