// The pages of users: every link leads somewhere, a page is named by a link, docs/README.md lists all pages,
// and a page in Chinese has the commands, keys and output of the English one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/files.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

// The checkout: the test's copy of a page is a link into it.
fs::path Root() { return fs::canonical("docs/README.md").parent_path().parent_path(); }

std::vector<std::string> Pages() {
  std::vector<std::string> pages;
  for (const char* room : {"", "docs"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(Root() / room)) {
      if (entry.path().extension() == ".md") pages.push_back(fs::relative(entry.path(), Root()).string());
    }
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

std::string Page(const std::string& path) { return FileContent((Root() / path).string()); }

struct Parts {
  std::string prose;                // without blocks of code, line by line
  std::vector<std::string> blocks;  // each with the language in its first line
};

Parts PartsOf(const std::string& page) {
  Parts parts;
  std::istringstream lines(page);
  bool in_block = false;
  for (std::string line; std::getline(lines, line);) {
    const bool fence = line.compare(0, 3, "```") == 0;
    if (fence && !in_block) parts.blocks.emplace_back();
    if (in_block || fence) {
      parts.blocks.back() += line + "\n";
      line.clear();
    }
    in_block = fence != in_block;
    parts.prose += line + "\n";
  }
  return parts;
}

// The anchor that Git hosts give to a heading.
std::string Anchor(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) || c == '-' || c == '_')
      anchor += static_cast<char>(std::tolower(byte));
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

std::set<std::string> Anchors(const std::string& page) {
  std::set<std::string> anchors;
  const std::regex heading("#+ (.*)");
  std::istringstream lines(PartsOf(page).prose);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, heading)) anchors.insert(Anchor(match[1]));
  }
  return anchors;
}

// What is wrong with the links and the names of pages in `page`, which stands at `path`.
std::vector<std::string> Faults(const std::string& path, const std::string& page) {
  std::vector<std::string> faults;
  const std::regex code("`[^`\n]*`"), link("\\]\\(([^)# ]*)(#[^) ]*)?\\)"),
      name("(^|[^\\[])`((docs/)?[a-z_]+\\.md)`");
  const std::string prose = PartsOf(page).prose;
  for (std::sregex_iterator it(prose.begin(), prose.end(), name), end; it != end; ++it) {
    if (fs::exists(Root() / "docs" / fs::path(std::string((*it)[2])).filename()))
      faults.push_back(path + ": no link: " + std::string((*it)[2]));
  }
  const std::string text = std::regex_replace(prose, code, "");
  for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
    const std::string to = (*it)[1], anchor = (*it)[2];
    if (to.compare(0, 4, "http") == 0) continue;
    const fs::path target = to.empty() ? Root() / path : Root() / fs::path(path).parent_path() / to;
    if (!fs::exists(target)) {
      faults.push_back(path + ": leads nowhere: " + to);
    } else if (!anchor.empty() && Anchors(FileContent(target.string())).count(anchor.substr(1)) == 0) {
      faults.push_back(path + ": no such heading: " + to + anchor);
    }
  }
  return faults;
}

// A block without comments and blanks at the ends of lines: these differ from language to language.
std::string Untold(const std::string& block) {
  return std::regex_replace(block, std::regex(" *#[^\n]*"), "");
}

std::vector<std::string> Commands(const std::string& page) {
  std::vector<std::string> commands;
  for (const std::string& block : PartsOf(page).blocks) commands.push_back(Untold(block));
  return commands;
}

std::string English(std::string path) { return path.erase(path.rfind(".zh."), 3); }

bool IsChinese(const std::string& path) { return path.find(".zh.") != std::string::npos; }

TEST_CASE("pages: every link leads somewhere, and every page is named by a link") {
  int pages = 0;
  for (const std::string& path : Pages()) {
    for (const std::string& fault : Faults(path, Page(path))) FAIL_CHECK(fault);
    ++pages;
  }
  CHECK(pages > 20);
}

TEST_CASE("pages: README.md and the Chinese one have at most 80 lines") {
  for (const char* const path : {"README.md", "README.zh.md"}) {
    CAPTURE(path);
    const std::string page = Page(path);
    CHECK(std::count(page.begin(), page.end(), '\n') <= 80);
  }
}

TEST_CASE("pages: the first section of README.md and of the Chinese one names both set-up commands") {
  for (const char* const path : {"README.md", "README.zh.md"}) {
    CAPTURE(path);
    const std::string page = Page(path);
    const size_t begin = page.find("\n## "), end = page.find("\n## ", begin + 1);
    const std::string section = page.substr(begin, end - begin);
    for (const char* const command : {"scripts/quickstart.sh", "scripts/test.sh"}) {
      CAPTURE(command);
      CHECK(section.find(command) != std::string::npos);
      CHECK(fs::exists(Root() / command));
    }
  }
}

TEST_CASE("pages: docs/README.md lists all of docs/") {
  const std::string index = Page("docs/README.md");
  for (const std::string& path : Pages()) {
    if (path.compare(0, 5, "docs/") != 0 || path == "docs/README.md") continue;
    CAPTURE(path);
    CHECK(index.find("](" + path.substr(5) + ")") != std::string::npos);
  }
}

TEST_CASE("pages: a page in Chinese has the commands, keys and output of the English one") {
  int pages = 0;
  for (const std::string& path : Pages()) {
    if (!IsChinese(path)) continue;
    CAPTURE(path);
    const std::vector<std::string> theirs = Commands(Page(path)), ours = Commands(Page(English(path)));
    CHECK(theirs.size() == ours.size());
    for (size_t i = 0; i < std::min(theirs.size(), ours.size()); ++i) CHECK(theirs[i] == ours[i]);
    ++pages;
  }
  CHECK(pages == 3);
}

TEST_CASE("pages: a dead link, a page without a link and a command that differs are found") {
  CHECK(Faults("docs/x.md", "[a](config.md#data) `[b](no.md)` [c](../README.md) [d](https://d)\n").empty());
  CHECK(Faults("docs/x.md", "see `wire.md`, [a](no.md) and [b](wire.md#no)\n```\n[c](no.md)\n```\n") ==
        std::vector<std::string>{"docs/x.md: no link: wire.md", "docs/x.md: leads nowhere: no.md",
                                 "docs/x.md: no such heading: wire.md#no"});
  CHECK(Commands("```sh\na b   # c\n```\n") == Commands("x\n```sh\na b # d\n```\n"));
  CHECK(Commands("```sh\na b\n```\n") != Commands("```sh\na c\n```\n"));
  CHECK(Anchor("`cluster`: Who, what & why") == "cluster-who-what--why");
}

}  // namespace
}  // namespace dtrain::testing
