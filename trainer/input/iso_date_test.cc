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
  CHECK(DaysOfDate("1970-01-01 06:00:00 UTC") == 0.25);
  CHECK(DaysOfDate("1970-01-01T060000Z") == 0.25);
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

TEST_CASE("dates: each form that data.dates names is read, with or without a time") {
  const auto iso = [](const char* text, const char* form) { return IsoDate(text, form).value_or("none"); };
  CHECK(iso("07/16/2025", "MM/DD/YYYY") == "2025-07-16");
  CHECK(iso("7/4/24", "MM/DD/YYYY") == "2024-07-04");
  CHECK(iso("7/4/69", "MM/DD/YYYY") == "1969-07-04");
  CHECK(iso("16/07/2025", "DD/MM/YYYY") == "2025-07-16");
  CHECK(iso("16.07.2025 09:30:15", "DD.MM.YYYY") == "2025-07-16T09:30:15");
  CHECK(iso("16-7-2025", "DD-MM-YYYY") == "2025-07-16");
  CHECK(iso("2025/07/16", "YYYY/MM/DD") == "2025-07-16");
  CHECK(iso("20250716", "YYYYMMDD") == "2025-07-16");
  CHECK(DaysOfDate(iso("19700102T120000Z", "YYYYMMDD")) == 1.5);
  CHECK(DaysOfDate(iso("19700102120000", "YYYYMMDD")) == 1.5);
  CHECK(iso("197001021200", "YYYYMMDD") == "none");
  CHECK(DaysOfDate(iso("129600000000", "microseconds")) == 1.5);
  CHECK(iso("01-JAN-2024", "DD-MON-YYYY") == "2024-01-01");
  CHECK(iso("1 September 2024", "DD-MON-YYYY") == "2024-09-01");
  CHECK(iso("Mar 5, 2024", "MON DD, YYYY") == "2024-03-05");
  CHECK(iso("08/19/2024 11:39 PM", "MM/DD/YYYY") == "2024-08-19T23:39");
  CHECK(iso("08/19/2024 12:05am", "MM/DD/YYYY") == "2024-08-19T00:05");
  CHECK(iso("08/19/2024 9:05", "MM/DD/YYYY") == "2024-08-19T09:05");
  CHECK(iso("08/19/2024T09:05+02:00", "MM/DD/YYYY") == "2024-08-19T09:05+02:00");
  CHECK(iso("2024-1-5", "YYYY-MM-DD") == "2024-01-05");
  CHECK(DaysOfDate(iso("86400", "seconds")) == 1);
  CHECK(DaysOfDate(iso("-43200000", "milliseconds")) == -0.5);
  CHECK(*DaysOfDate(iso("1.7e9", "seconds")) == doctest::Approx(1.7e9 / 86400));
}

TEST_CASE("dates: a text of another form, or a day that is none, is not read") {
  for (const char* text : {"16/07/2025", "02/30/2024", "7/4", "7-4-2024", "07/16/2025x", "07/16/2025 25:00",
                           "07/16/2025 13:00 PM", "07/16/2025 9", "", "07/16/125"}) {
    CAPTURE(text);
    CHECK_FALSE(IsoDate(text, "MM/DD/YYYY"));
  }
  CHECK_FALSE(IsoDate("24/01/05", "YYYY/MM/DD"));
  CHECK_FALSE(IsoDate("01-JUX-2024", "DD-MON-YYYY"));
  CHECK_FALSE(IsoDate("12a", "seconds"));
}

}  // namespace
}  // namespace dtrain
