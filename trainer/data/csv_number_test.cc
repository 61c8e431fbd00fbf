#include "trainer/data/csv_number.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/random.h"

namespace dtrain {
namespace {

float Number(const std::string& text) {
  float number = 0;
  CAPTURE(text);
  CHECK(ParseNumber(text, &number) == NumberText::kGood);
  return number;
}
NumberText State(const std::string& text) {
  float number = 0;
  return ParseNumber(text, &number);
}

TEST_CASE("csv number: the ways of writing a number") {
  CHECK(Number("0") == 0.0f);
  CHECK(Number("5.1") == 5.1f);
  CHECK(Number("-.5") == -0.5f);
  CHECK(Number("+5.") == 5.0f);
  CHECK(Number("1e3") == 1000.0f);
  CHECK(Number("+1.5E-3") == 1.5e-3f);
  CHECK(Number("0007") == 7.0f);
  CHECK(Number("16777217") == 16777216.0f);
  CHECK(Number("3.4028235e38") == 3.4028235e38f);
  CHECK(std::signbit(Number("-0")));
}

TEST_CASE("csv number: is the nearest float32, bit for bit") {
  const CounterRandom random(3);
  for (uint64_t i = 0; i < 200000; ++i) {
    const auto bits = static_cast<uint32_t>(random.Bits(i));
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const std::string text = i % 2 == 0 ? fmt::format("{}", value) : fmt::format("{:.12g}", value);
    const std::string shorter = fmt::format("{:.{}f}", random.Uniform(i) * 1000 - 500, i % 8);
    for (const std::string& one : {text, shorter}) {
      const float expected = std::strtof(one.c_str(), nullptr);
      const float got = Number(one);
      if (std::memcmp(&got, &expected, sizeof got) != 0) FAIL(one);
    }
  }
}

TEST_CASE("csv number: what is too small for float32 is rounded, what is too large refused") {
  CHECK(Number("1e-60") == 0.0f);
  CHECK(Number("1e-45") == 1e-45f);
  CHECK(Number("1e-50") == 0.0f);
  CHECK(Number("1e-400") == 0.0f);
  CHECK(std::signbit(Number("-1e-400")));
  CHECK(Number("+12.5E-99999999999999999999") == 0.0f);
  CHECK(Number("0." + std::string(500, '0') + "1") == 0.0f);
  CHECK(Number(std::string(100, '0') + "1e-500") == 0.0f);
  CHECK(Number("0." + std::string(500, '0') + "1e501") == 1.0f);
  CHECK(State("1e39") == NumberText::kTooLarge);
  CHECK(State("-1e999") == NumberText::kTooLarge);
  CHECK(State("1e99999999999999999999") == NumberText::kTooLarge);
  CHECK(State(std::string(500, '9')) == NumberText::kTooLarge);
  CHECK(State("0.0001e+50") == NumberText::kTooLarge);
  CHECK(State("0." + std::string(50, '0') + "1e400") == NumberText::kTooLarge);
}

TEST_CASE("csv number: the whole text must be one finite number") {
  for (const char* text :
       {"abc", "1x", "1 2", "1.2.3", "0x10", "-", "+", ".", "e5", "1e", "+-1", "--1", "1,5"}) {
    CAPTURE(text);
    CHECK(State(text) == NumberText::kNoNumber);
  }
  for (const char* text : {"nan", "NaN", "-nan", "inf", "-INF", "infinity"}) {
    CAPTURE(text);
    CHECK(State(text) == NumberText::kNotFinite);
  }
  CHECK(State("") == NumberText::kEmpty);
  CHECK(State(std::string("1\0", 2)) == NumberText::kNoNumber);
}

}  // namespace
}  // namespace dtrain
