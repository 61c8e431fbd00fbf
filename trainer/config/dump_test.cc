#include <doctest/doctest.h>

#include "base/testing/files.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"
#include "trainer/config/fields.h"
#include "trainer/config/load_test_util.h"

namespace dtrain {

namespace {

const char* const kSmall = "trainer/config/testdata/small.yaml";

std::string ValueOf(const Settings& settings, const std::string& key) {
  for (const auto& [name, value] : settings) {
    if (name == key) return value;
  }
  return "not there";
}

TEST_CASE("dump: holds every key, whatever its value") {
  const std::string text = DumpConfig(Config{});
  for (const Field& field : Fields()) {
    const std::string name = field.key.substr(field.key.rfind('.') + 1) + ": ";
    CAPTURE(field.key);
    if (field.alias_of.empty()) CHECK(text.find(name) != std::string::npos);
  }
}

TEST_CASE("dump: as one flat object every key has its value in effect, and variables of machines have none") {
  const std::vector<std::string> sets = {"train.batch_size=7",
                                         "launch.hosts={127.0.0.1: {environment: {TOKEN: s3cret}}}"};
  const Json flat = FlatConfig(LoadConfig(kSmall, sets, {}));
  CHECK(flat.at("train.batch_size") == 7);
  CHECK(flat.at("data.shuffle") == true);
  CHECK(flat.at("train.mode") == "async");
  CHECK(flat.at("train.max_secs").is_null());
  CHECK_FALSE(flat.contains("hooks.stop_at_step"));  // another name
  const std::string kept = DumpConfig(WithoutSecrets(LoadConfig(kSmall, sets, {})));
  CHECK(kept.find("TOKEN") != std::string::npos);
  CHECK(kept.find("s3cret") == std::string::npos);
  CHECK(flat.dump().find("TOKEN") != std::string::npos);
  CHECK(flat.dump().find("s3cret") == std::string::npos);
}

TEST_CASE("dump: the digest of a config changes with the job, and not with what each task may choose") {
  const std::string digest = ConfigDigest(LoadConfig(kSmall, {}, {}));
  CHECK(digest.size() == 16);
  CHECK(ConfigDigest(LoadConfig(kSmall, {"log.level=debug", "run.dir=a"}, {})) == digest);
  CHECK(ConfigDigest(LoadConfig(kSmall, {"train.batch_size=7"}, {})) != digest);
}

TEST_CASE("dump: loads to itself, with texts that YAML could misread") {
  const std::vector<std::string> sets = {
      "log={dir: \"a: b # \\\"c\\\" \\t \\u00e9\", format: json, level: error}",
      "cluster.ps=[\"[::1]:1\", node_1.example:0]",
      "train.optimizer.learning_rate=0.1234567890123456789",
      "model.init.stddev=1e-7",
      "data.seed=9223372036854775807",
      "net.bind=\"0.0.0.0:5\"",
  };
  const Config config = LoadConfig(kSmall, sets, {});
  const std::string text = DumpConfig(config);
  const Config again = LoadConfig(WriteTestFile("dump.yaml", text), {}, {});
  CHECK(DumpConfig(again) == text);
  CHECK(again.log.dir == config.log.dir);
  CHECK(again.train.optimizer.learning_rate == config.train.optimizer.learning_rate);
  CHECK(again.data.seed == 9223372036854775807u);
}

TEST_CASE("dump: what a flag made void is null, so that the dump loads") {
  const std::string text =
      DumpConfig(LoadConfig(kSmall, {"model.init.kind=constant", "model.init.value=2"}, {}));
  CHECK(text.find("stddev: null") != std::string::npos);
  CHECK(LoadError(WriteTestFile("void.yaml", text)) == "");
}

TEST_CASE("run settings: hold the keys of scope run, in the table's order") {
  const Settings settings = RunSettings(LoadConfig(kSmall, {"log.level=debug"}, {}));
  CHECK(settings.front().first == "cluster.ps");
  CHECK(ValueOf(settings, "cluster.worker") == "[\"localhost:2\", \"localhost:3\"]");
  CHECK(ValueOf(settings, "train.steps") == "50");
  CHECK(ValueOf(settings, "model.init.stddev") == "0.5");
  CHECK(ValueOf(settings, "hooks.stop_at_step") == "not there");
  CHECK(ValueOf(settings, "log.level") == "not there");
  CHECK(ValueOf(settings, "device.threads") == "not there");
}

TEST_CASE("first difference: none between equal settings") {
  const Settings settings = RunSettings(Config{});
  CHECK_FALSE(FirstDifference(settings, settings).has_value());
}

TEST_CASE("first difference: the first in the table's order, with both values") {
  Config theirs;
  theirs.train.batch_size = 64;
  theirs.train.optimizer.learning_rate = 0.5;
  const auto difference = FirstDifference(RunSettings(Config{}), RunSettings(theirs));
  CHECK(SettingsHash(RunSettings(Config{})) != SettingsHash(RunSettings(theirs)));
  REQUIRE(difference.has_value());
  CHECK(difference->key == "train.batch_size");
  CHECK(difference->ours == "100");
  CHECK(difference->theirs == "64");
}

TEST_CASE("first difference: a key that one side lacks counts") {
  const Settings more = {{"a", "1"}, {"b", "2"}};
  const Settings less = {{"a", "1"}};
  const auto they_lack = FirstDifference(more, less);
  REQUIRE(they_lack.has_value());
  CHECK((they_lack->key == "b" && they_lack->ours == "2" && they_lack->theirs == kMissingSetting));
  const auto we_lack = FirstDifference(less, more);
  REQUIRE(we_lack.has_value());
  CHECK((we_lack->key == "b" && we_lack->ours == kMissingSetting && we_lack->theirs == "2"));
}

TEST_CASE("reference: docs/config.md is the text of the table") {
  const bool up_to_date = testing::FileContent("docs/config.md") == ConfigReference();
  CHECK_MESSAGE(up_to_date,
                "docs/config.md is stale. Run: bazel run //trainer/config:write_reference > docs/config.md");
}

}  // namespace

}  // namespace dtrain
