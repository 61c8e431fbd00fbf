// The YAML documents of deploy/, as Python reads them. Thread: the test's.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace dtrain::testing {

// What is wrong with the documents of `files` by their schemas, a line each; empty where all are good.
// Python() is there.
std::string ManifestErrors(const std::string& files);
// The one document of `kind` in `files`; a failed CHECK and null where there is none.
nlohmann::json Manifest(const std::string& files, const std::string& kind);

}  // namespace dtrain::testing
