#include "trainer/config/user_text.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

constexpr size_t kAllText = std::string::npos;

TEST_CASE("text: UTF-8, tabs and line ends are text") {
  CHECK(FirstNonText("") == kAllText);
  CHECK(FirstNonText("a: \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\r\n\t") == kAllText);
}

TEST_CASE("text: the first byte that is none is found") {
  CHECK(FirstNonText(std::string("ab\0c", 4)) == 2);
  CHECK(FirstNonText("\x1f\x8b") == 0);
  CHECK(FirstNonText("a\xff") == 1);
  CHECK(FirstNonText("a\xc3") == 1);          // cut short
  CHECK(FirstNonText("a\xc3(b") == 1);        // not continued
  CHECK(FirstNonText("\xc0\x80") == 0);       // an overlong zero
  CHECK(FirstNonText("ab\x1b[31mred") == 2);  // a terminal's escape sequence
}

TEST_CASE("text: UTF-8 is what any reader of it takes, control characters among it") {
  for (const char* good : {"", "caf\xc3\xa9", "\x1b\x7f", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80",
                           "\xf4\x8f\xbf\xbf"}) {
    CHECK(IsUtf8(good));
  }
  for (const char* bad : {"caf\xe9", "caf\xe9s", "\xc3", "\xc0\x80", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xff", "\x80"}) {
    CAPTURE(Shown(bad));
    CHECK_FALSE(IsUtf8(bad));
    CHECK(FirstNonText(bad) != kAllText);
  }
}

TEST_CASE("quoted: quotes, backslashes and control characters are escaped") {
  CHECK(Quoted("a \"b\" \\ c\n") == "\"a \\\"b\\\" \\\\ c\\x0a\"");
}

TEST_CASE("shown: stays on one line and is cut at the end of a character") {
  CHECK(Shown("a\nb\x1b") == "a\\x0ab\\x1b");
  CHECK(Shown("a\xff") == "a\\xff");
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "\xc3\xa9";
  CHECK(Shown("x" + accents) == "x" + accents.substr(0, 80) + "...");
}

}  // namespace
}  // namespace dtrain
