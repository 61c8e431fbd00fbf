#include "base/printable.h"

#include <doctest/doctest.h>

#include <string>

namespace dtrain {
namespace {

TEST_CASE("printable: text of people stays as it is") {
  for (const std::string text :
       {"", "train.steps is 1, and 2 there\tor so", "Zürich, 東京, 🙂", "C:\\runs\\x1b"}) {
    CHECK(Printable(text) == text);
  }
}

TEST_CASE("printable: line breaks, control characters and marks of direction are written out") {
  CHECK(Printable("a\nb\r") == "a\\nb\\x0d");
  CHECK(Printable("\x1b[2J\x1b]0;title\x07\x7f") == "\\x1b[2J\\x1b]0;title\\x07\\x7f");
  CHECK(Printable(std::string("\0", 1)) == "\\x00");
  CHECK(Printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");  // C1: the escape sequence in one character
  CHECK(Printable("\xe2\x80\xa8") == "\\xe2\\x80\\xa8");
  CHECK(Printable("\xe2\x80\xae"
                  "exe") == "\\xe2\\x80\\xaeexe");
}

TEST_CASE("printable: every byte that is not UTF-8 is written out, and the rest of the text is kept") {
  CHECK(Printable("a\xff"
                  "b") == "a\\xffb");
  CHECK(Printable("\xc3") == "\\xc3");
  CHECK(Printable("\xc3(") == "\\xc3(");
  CHECK(Printable("\xc0\x9b") == "\\xc0\\x9b");           // an escape, longer than it need be
  CHECK(Printable("\xe0\x82\x9b") == "\\xe0\\x82\\x9b");  // likewise
  CHECK(Printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(Printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(Printable("\x9b"
                  "31m") == "\\x9b31m");
}

TEST_CASE("printable: of each byte that is shown alone only ASCII is, and nothing is lost") {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    const bool shown = (byte >= 0x20 && byte < 0x7f) || byte == '\t';
    CAPTURE(byte);
    CHECK((Printable(text) == text) == shown);
  }
}

TEST_CASE("printable: a long text is cut between two characters, in its written form") {
  CHECK(Printable("abcd", 4) == "abcd");
  CHECK(Printable("abcde", 4) == "abcd...");
  CHECK(Printable("abcü", 4) == "abc...");
  CHECK(Printable("ab\x1b", 4) == "ab...");
  CHECK(Printable(Printable("a\x1b\n")) == Printable("a\x1b\n"));
}

}  // namespace
}  // namespace dtrain
