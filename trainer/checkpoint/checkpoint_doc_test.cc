// docs/checkpoint.md stays true: its example is what the writer makes, and it names every field.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <regex>

#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/config/model_config.h"
#include "trainer/model/layout.h"

namespace dtrain::testing {
namespace {

// One ps with weights/W1 [2, 1] and biases/b1 [1]; optimizer momentum.
std::string ExampleCheckpoint() {
  std::vector<Variable> variables(2);
  variables[0].name = "weights/W1";
  variables[0].rows = 2;
  variables[1].name = "biases/b1";
  variables[1].rows = 1;
  const Layout layout = PlaceVariables(variables, 1, PlacementConfig());
  CheckpointDirectory directory(NewDirectory());
  const std::string temporary = directory.BeginSave(300);
  ShardWriter writer(temporary + "/shard-0-of-1");
  std::vector<uint64_t> checksums;
  for (const std::vector<float>& values : {std::vector<float>{0.5f, -0.25f}, {1}, {2, 4}, {8}}) {
    checksums.push_back(writer.Add(values.data(), values.size() * sizeof(float)));
  }
  writer.Finish();
  Manifest manifest = BuildManifest(layout, std::vector<std::string>{"velocity"}, {checksums});
  manifest.step = 300;
  manifest.saved_unix_ms = 1767225600000;  // 2026-01-01 00:00 UTC
  manifest.run_id = 0x1122334455667788;
  manifest.version = "0.1.0";
  manifest.optimizer = "momentum";
  manifest.mode = "async";
  manifest.positions = "{}";
  directory.Seal(temporary, manifest, "a: b\n");
  return directory.Publish(temporary);
}

std::string HexDump(const std::string& bytes) {
  std::string dump;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % 16 == 0) dump += fmt::format("\n    {:04x} ", i);
    dump += fmt::format(" {:02x}", static_cast<unsigned char>(bytes[i]));
  }
  return dump + "\n";
}

void CheckNamed(const std::string& document, const std::string& text) {
  CAPTURE(text);
  CHECK(document.find(text) != std::string::npos);
}

TEST_CASE("checkpoint.md: the worked example is what is written") {
  const std::string document = FileContent("docs/checkpoint.md");
  const std::string path = ExampleCheckpoint();
  CheckNamed(document, HexDump(FileContent(path + "/shard-0-of-1")));
  CheckNamed(document, HexDump(FileContent(path + "/manifest")));
}

TEST_CASE("checkpoint.md: every field of the manifest and every constant is there") {
  const std::string document = FileContent("docs/checkpoint.md");
  const std::string schema = FileContent("trainer/checkpoint/manifest.fbs");
  const std::regex field("(\\w+):[\\w\\[]");
  int fields = 0;
  for (std::sregex_iterator each(schema.begin(), schema.end(), field), end; each != end; ++each, ++fields) {
    CheckNamed(document, "`" + each->str(1) + "`");
  }
  CHECK(fields == 60);
  CheckNamed(document, fmt::format("at most {} elements", kBlockValues));
  CheckNamed(document, fmt::format("multiple of {} bytes", kShardAlignment));
  CheckNamed(document, "`dtrain checkpoint shard, format 1`");
}

}  // namespace
}  // namespace dtrain::testing
