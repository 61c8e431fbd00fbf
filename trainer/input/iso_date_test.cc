#include "trainer/input/iso_date.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("dates: a day is a whole number of days since 1970, and a time a fraction of one, in UTC") {
  CHECK(DaysOfDate("1970-01-01") == 0);
  CHECK(DaysOfDate("1969-12-31") == -1);
  CHECK(DaysOfDate("2024-02-29") == 19782);
  CHECK(DaysOfDate("2000-03-01") == 11017);
  CHECK(DaysOfDate("1900-03-01") == -25508);
  CHECK(DaysOfDate("0000-01-01") == -719528);
  CHECK(DaysOfDate("1970-01-02T12:00") == 1.5);
  CHECK(DaysOfDate("1970-01-02 12:00:00") == 1.5);
  CHECK(*DaysOfDate("1970-01-01 00:00:43.2") == doctest::Approx(0.0005));
  CHECK(DaysOfDate("1970-01-01T06:00Z") == 0.25);
  CHECK(DaysOfDate("1970-01-01T06:00+06:00") == 0);
  CHECK(DaysOfDate("1970-01-01T06:00-0600") == 0.5);
  CHECK(DaysOfDate("1970-01-01T06:00+06") == 0);
}

TEST_CASE("dates: other texts are none") {
  for (const char* text : {"", "2024", "2024-1-31", "2024-13-01", "2024-00-10", "2023-02-29", "2024-01-32",
                           "31.01.2024", "2024-01-31 ", "2024-01-31x", "2024-01-31T9:30", "2024-01-31T09",
                           "2024-01-31T09:60", "2024-01-31T09:30:", "2024-01-31T09:30:15.",
                           "2024-01-31T09:30+", "2024-01-31T09:30+02:", "2024-01-31T09:30Zx"}) {
    CAPTURE(text);
    CHECK(!DaysOfDate(text));
  }
}

}  // namespace
}  // namespace dtrain
