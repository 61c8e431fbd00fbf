#include "cmd/testing/manifests.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cmd/testing/python.h"

namespace dtrain::testing {

std::string ManifestErrors(const std::string& files) {
  // The command's own success, which OutputOf() would drop the text for.
  return OutputOf(
      fmt::format("{} cmd/testdata/manifests.py validate cmd/testdata/tfjob.schema.json {} 2>&1 || true",
                  Python(), files));
}

nlohmann::json Manifest(const std::string& files, const std::string& kind) {
  const std::string text =
      OutputOf(fmt::format("{} cmd/testdata/manifests.py documents {}", Python(), files));
  for (const nlohmann::json& document : nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false)) {
    if (document.is_object() && document.at("kind") == kind) return document;
  }
  CHECK_MESSAGE(false, kind);
  return nlohmann::json();
}

}  // namespace dtrain::testing
