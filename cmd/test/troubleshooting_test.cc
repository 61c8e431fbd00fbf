// docs/troubleshooting.md goes by message. Each one that it quotes, as a heading in backticks with "..." for
// what differs, must be a text of the program: its parts stand in one string constant, in their order.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {
namespace {

// "### `a ... b`" -> "a ", " b".
std::vector<std::string> PartsOf(const std::string& heading) {
  const size_t begin = heading.find('`') + 1;
  const std::string message = heading.substr(begin, heading.rfind('`') - begin);
  std::vector<std::string> parts;
  for (size_t at = 0; at <= message.size();) {
    const size_t end = std::min(message.find("...", at), message.size());
    if (end > at) parts.push_back(message.substr(at, end - at));
    at = end + 3;
  }
  return parts;
}

// Whether `parts` follow one another in one of the texts of `program`, each of which ends with a zero.
bool IsText(const std::string& program, const std::vector<std::string>& parts) {
  for (size_t at = 0; (at = program.find(parts[0], at)) != std::string::npos; ++at) {
    const size_t end = program.find('\0', at);
    size_t next = at;
    bool all = true;
    for (const std::string& part : parts) {
      next = program.find(part, next);
      all = all && next < end;
      if (!all) break;
      next += part.size();
    }
    if (all) return true;
  }
  return false;
}

TEST_CASE("troubleshooting: every message that the page quotes is one of the program's") {
  const std::string program = FileContent("cmd/dtrain");
  std::ifstream page("docs/troubleshooting.md");
  int messages = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.compare(0, 5, "### `") != 0) continue;
    CAPTURE(line);
    CHECK(IsText(program, PartsOf(line)));
    ++messages;
  }
  CHECK(messages > 20);
}

TEST_CASE("troubleshooting: a message that is not the program's is found") {
  const std::string program = std::string("{}: cannot be opened: {}. Is {} right?\0other", 44);
  CHECK(IsText(program, PartsOf("### `cannot be opened: ... right?`")));
  CHECK_FALSE(IsText(program, PartsOf("### `cannot be found: ...`")));
  CHECK_FALSE(IsText(program, PartsOf("### `right? ... cannot be opened`")));
  CHECK_FALSE(IsText(program, PartsOf("### `cannot be opened ... other`")));
}

}  // namespace
}  // namespace dtrain::testing
