// docs/architecture.md names paths, classes and functions. Each of them exists in the sources.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace dtrain {
namespace {

namespace fs = std::filesystem;

std::string Read(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The checkout: the test's copy of the page is a link into it.
fs::path Root() { return fs::canonical("docs/architecture.md").parent_path().parent_path(); }

std::vector<std::string> Sources() {
  std::vector<std::string> texts;
  for (const char* room : {"base", "bench", "cmd", "gpu", "net", "trainer"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(Root() / room)) {
      const fs::path extension = entry.path().extension();
      const bool test = entry.path().stem().string().find("_test") != std::string::npos;
      if (!test && (extension == ".h" || extension == ".cc" || extension == ".cu")) {
        texts.push_back(Read(entry.path()));
      }
    }
  }
  return texts;
}

// What stands between backticks, outside of blocks of code; `A > B > C` are three names.
std::set<std::string> Names(const std::string& page) {
  std::set<std::string> names;
  const std::regex span("`([^`\n]+)`"), step("[^ >]+");
  for (std::sregex_iterator it(page.begin(), page.end(), span), end; it != end; ++it) {
    const std::string text = (*it)[1];
    if (text.find(" > ") == std::string::npos) {
      names.insert(text);
      continue;
    }
    for (std::sregex_iterator name(text.begin(), text.end(), step); name != end; ++name)
      names.insert(name->str());
  }
  return names;
}

bool PathExists(std::string path) {
  while (!path.empty() && path.back() == '/') path.pop_back();
  if (path.find('*') != std::string::npos) path = path.substr(0, path.rfind('/'));
  for (const char* ending : {"", ".h", ".cc", ".md"}) {
    for (const char* room : {"", "docs/"}) {
      if (fs::exists(Root() / (room + path + ending))) return true;
    }
  }
  return false;
}

// Whether one file has both the type `scope` and the word `name`; without a scope, the word.
bool IsInSources(const std::vector<std::string>& sources, const std::string& scope, const std::string& name) {
  const std::regex word("\\b" + name + "\\b");
  const std::regex type("\\b(class|struct|namespace) ([A-Z_]+ )?" + scope + "\\b|\\b" + scope + "::");
  for (const std::string& text : sources) {
    if (text.find(name) == std::string::npos || text.find(scope) == std::string::npos) continue;
    if (std::regex_search(text, word) && (scope.empty() || std::regex_search(text, type))) return true;
  }
  return false;
}

TEST_CASE("architecture.md: every path, class and function that it names exists") {
  const std::vector<std::string> sources = Sources();
  const std::regex path("[a-z0-9_.*-]+(/[A-Za-z0-9_.*-]*)+"), camel("[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*"),
      scoped("([A-Za-z]+)::([A-Za-z]+)");
  int checked = 0;
  for (const std::string& name : Names(Read("docs/architecture.md"))) {
    CAPTURE(name);
    std::smatch parts;
    if (std::regex_match(name, path)) {
      CHECK(PathExists(name));
    } else if (std::regex_match(name, parts, scoped)) {
      CHECK(IsInSources(sources, parts[1], parts[2]));
    } else if (std::regex_match(name, camel)) {
      CHECK(IsInSources(sources, "", name));
    } else {
      continue;
    }
    ++checked;
  }
  CHECK(checked > 30);
}

}  // namespace
}  // namespace dtrain
