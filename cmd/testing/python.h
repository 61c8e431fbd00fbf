// Python with the packages of scripts/test_requirements.txt, for tests that read dtrain's files with the
// programs that its users have. Thread: the test's.
#pragma once

#include <string>

namespace dtrain::testing {

// The interpreter's path, made on first use. Empty, after a line that says SKIPPED, where PyPI is out of
// reach.
const std::string& Python();

// What a command prints on standard output. Empty where it fails.
std::string OutputOf(const std::string& command);

}  // namespace dtrain::testing
