// Python with the packages of scripts/test_requirements.txt, for tests that read dtrain's files with the
// programs that its users have. Thread: the test's.
#pragma once

#include <string>

#include "base/json.h"

namespace dtrain::testing {

// The interpreter's path, made on first use. Empty, after a line that says SKIPPED, where PyPI is out of
// reach.
const std::string& Python();

// What a command prints on standard output. Empty where it fails.
std::string OutputOf(const std::string& command);

// What is wrong with the documents of `files` by their schemas, a line each; empty where all are good.
// Python() is there.
std::string ManifestErrors(const std::string& files);
// The one document of `kind` in `files`; a failed CHECK and null where there is none.
Json Manifest(const std::string& files, const std::string& kind);

}  // namespace dtrain::testing
