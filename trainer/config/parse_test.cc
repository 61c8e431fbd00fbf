#include "trainer/config/parse.h"

#include <doctest/doctest.h>

#include "trainer/config/item_text.h"

namespace dtrain {
namespace {

Parsed Parse(const std::string& key, const std::string& text, bool quoted = false) {
  const Field* field = FindField(key);
  REQUIRE(field != nullptr);
  return ParseScalar(*field, text, quoted);
}

TEST_CASE("parse: whole numbers are plain decimal digits") {
  CHECK(Parse("train.steps", "1").value == Value(int64_t{1}));
  CHECK(Parse("train.steps", "+7").value == Value(int64_t{7}));
  CHECK(Parse("train.steps", "9223372036854775807").value == Value(int64_t{9223372036854775807}));
  CHECK(Parse("data.seed", "0").value == Value(int64_t{0}));
}

TEST_CASE("parse: a whole number in another notation is refused with the plain one") {
  const std::string rule = "must be a whole number in plain digits. Write ";
  CHECK(Parse("train.steps", "1e6").problem == rule + "1000000.");
  CHECK(Parse("train.steps", "1_000_000").problem == rule + "1000000.");
  CHECK(Parse("train.steps", "5.0").problem == rule + "5.");
  CHECK(Parse("train.steps", "010").problem == rule + "10.");
  CHECK(Parse("train.steps", "0x1F").problem == rule + "31.");
  CHECK(Parse("train.steps", "5", true).problem ==
        "must be a whole number in plain digits, without quotes. Write 5.");
}

TEST_CASE("parse: what is no whole number at all is refused with the rule and an example") {
  for (const char* text :
       {"", "ten", "1.5", "-", "1-2", "1e", "1e300", ".inf", "1:30", "0x", "0xg", "0o17", "1 000"}) {
    CAPTURE(text);
    CHECK(Parse("train.steps", text).problem == "must be a whole number, >= 1 (global steps). Try 1000.");
  }
}

TEST_CASE("parse: rows to hold out are a number or a share, and no percentage") {
  CHECK(Parse("data.validation", "0.2").value == Value(0.2));
  CHECK(
      Parse("data.validation", "10%").problem ==
      "must be a number, 0 to 1000000000000000 (rows held out: their number, or a share below 1). Try 100.");
}

TEST_CASE("parse: a class with its weight, and a label with its new name") {
  CHECK(ParseClassWeight("yes=3") == std::pair(std::string("yes"), 3.0));
  CHECK(ParseClassWeight("a=b=0.5") == std::pair(std::string("a=b"), 0.5));
  for (const char* text : {"", "yes", "=3", "yes=", "yes=-1", "yes=x", "yes=1e31"}) {
    CAPTURE(text);
    CHECK(!ParseClassWeight(text));
  }
  CHECK(ParseRename("<=50K. -> <=50K") == std::pair(std::string("<=50K."), std::string("<=50K")));
  for (const char* text : {"", "a", " -> b", "a -> ", "a->b"}) {
    CAPTURE(text);
    CHECK(!ParseRename(text));
  }
}

TEST_CASE("parse: numbers out of range are refused with the limit that they break") {
  CHECK(Parse("train.batch_size", "0").problem == "must be >= 1 (examples per step). Try 64.");
  CHECK(Parse("train.batch_size", "-5").problem == "must be >= 1 (examples per step). Try 64.");
  CHECK(Parse("train.in_flight", "65").problem == "must be <= 64 (open exchanges). Try 1.");
  CHECK(Parse("train.steps", "9223372036854775808").problem == "must be <= 9223372036854775807. Try 1000.");
  CHECK(Parse("train.steps", "-9223372036854775809").problem ==
        "must be >= 1 (global steps). Try 1000, or leave it out: no limit.");
  CHECK(Parse("run.keep", "0").problem ==
        "must be >= 1 (directories). Try 20, or leave it out: all that have begun stay.");
  CHECK(Parse("train.optimizer.learning_rate", "0").problem == "must be > 0. Try 0.01.");
  CHECK(Parse("failure.detect_s", "0.05").problem == "must be >= 0.1 (seconds). Try 10.");
}

TEST_CASE("parse: numbers are read in any YAML notation of a decimal") {
  const std::string key = "train.optimizer.learning_rate";
  CHECK(Parse(key, "0.5").value == Value(0.5));
  CHECK(Parse(key, ".5").value == Value(0.5));
  CHECK(Parse(key, "5.").value == Value(5.0));
  CHECK(Parse(key, "3e-5").value == Value(3e-5));
  CHECK(Parse(key, "+1E+1").value == Value(10.0));
  CHECK(Parse(key, "1").value == Value(1.0));
}

TEST_CASE("parse: what is no decimal number is refused") {
  const std::string key = "train.optimizer.learning_rate";
  for (const char* text :
       {"", ".nan", "nan", ".inf", "inf", "0x1p3", "1e999", "1e-999", "--1", "1.2.3", "."}) {
    CAPTURE(text);
    CHECK(Parse(key, text).problem == "must be a number, > 0, <= 1e+30. Try 0.01.");
  }
  CHECK(Parse(key, "0,5").problem == "must be a number. Write 0.5.");
  CHECK(Parse(key, "0.5", true).problem == "must be a number, without quotes. Write 0.5.");
}

TEST_CASE("parse: only true and false are truth values") {
  CHECK(Parse("data.shuffle", "true").value == Value(true));
  CHECK(Parse("data.shuffle", "false").value == Value(false));
  for (const char* text : {"yes", "Yes", "on", "True", "TRUE", "y", "1"}) {
    CHECK(Parse("data.shuffle", text).problem == "must be true or false. Write true.");
  }
  for (const char* text : {"no", "off", "False", "n", "0"}) {
    CHECK(Parse("data.shuffle", text).problem == "must be true or false. Write false.");
  }
  CHECK(Parse("data.shuffle", "maybe").problem == "must be true or false.");
  CHECK(Parse("data.shuffle", "true", true).problem == "must be true or false, without quotes. Write true.");
}

TEST_CASE("parse: choices are names, quoted or not") {
  CHECK(Parse("model.kind", "softmax").value == Value(std::string("softmax")));
  CHECK(Parse("model.kind", "softmax", true).value == Value(std::string("softmax")));
  CHECK(Parse("data.split", "part").problem == "must be shard, full, feed or dynamic. Try shard.");
}

TEST_CASE("parse: a choice in capitals, or as others call it, is not taken but led to its name") {
  CHECK(Parse("train.mode", "SYNC").problem == "must be async, sync or ssp. Did you mean sync?");
  CHECK(Parse("data.train.format", "CSV").problem.find("Did you mean csv?") != std::string::npos);
  CHECK(Parse("device.kind", "gpu").problem == "must be auto, cpu or cuda. Did you mean cuda?");
  CHECK(Parse("device.kind", "GPU").problem == "must be auto, cpu or cuda. Did you mean cuda?");
  CHECK(Parse("train.mode", "Synchronous").problem == "must be async, sync or ssp. Did you mean sync?");
  for (const Field& field : Fields()) {
    for (const auto& [other, name] : field.other_names) {
      CAPTURE(other);
      CHECK(Parse(field.key, name).problem == "");
      CHECK(Parse(field.key, other).problem != "");
    }
  }
}

TEST_CASE("parse: addresses are checked where they are read") {
  CHECK(Parse("net.bind", "0.0.0.0:9001").value == Value(std::string("0.0.0.0:9001")));
  CHECK(Parse("cluster.ps", "[::1]:9001").problem == "");
  CHECK(Parse("cluster.ps", "localhost:0").problem == "");
  for (const char* text : {"", "host", ":1", "host:", "host:65536", "host:x", "::1:9001", "a b:1", "[::1]"}) {
    CAPTURE(text);
    const std::string problem = Parse("cluster.ps", text).problem;
    CHECK(problem.find("Write host:port, such as") != std::string::npos);
    CHECK(problem.find('"') == std::string::npos);  // the value is not said twice
  }
}

TEST_CASE("parse: a path is any text but the ones that were meant otherwise") {
  CHECK(Parse("log.dir", "run/logs").value == Value(std::string("run/logs")));
  CHECK(Parse("log.dir", "20240101").value == Value(std::string("20240101")));
  CHECK(Parse("log.dir", "false").problem == "must be a path. Write null for none.");
  CHECK(Parse("log.dir", "false", true).problem == "");
  CHECK(Parse("log.dir", "", true).problem == "must not be empty. Write null for none.");
  CHECK(Parse("log.dir", "~/logs").problem == "'~' is not expanded here. Write the whole path.");
}

}  // namespace
}  // namespace dtrain
