// docs/architecture.md names paths, classes and functions: each of them exists in the sources. And it says
// that includes point one way: between folders, and between the units of each.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
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

// The sources without tests and what only they use, by path.
std::map<std::string, std::string> Sources() {
  std::map<std::string, std::string> sources;
  for (const char* room : {"base", "bench", "cmd", "gpu", "net", "trainer"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(Root() / room)) {
      const fs::path extension = entry.path().extension();
      const std::string name = fs::relative(entry.path(), Root()).string();
      const bool test = name.find("_test") != std::string::npos || name.find("/test") != std::string::npos;
      if (!test && (extension == ".h" || extension == ".cc" || extension == ".cu")) {
        sources[name] = Read(entry.path());
      }
    }
  }
  return sources;
}

using Graph = std::map<std::string, std::set<std::string>>;

// What the sources include, each as `node` calls it.
template <typename Node>
Graph Includes(const std::map<std::string, std::string>& sources, Node&& node) {
  Graph graph;
  const std::regex include("#include \"([^\"]+)\"");
  for (const auto& [name, text] : sources) {
    for (std::sregex_iterator it(text.begin(), text.end(), include), end; it != end; ++it) {
      const std::string from = node(name), to = node((*it)[1]);
      if (sources.count((*it)[1]) == 1 && from != to) graph[from].insert(to);
    }
  }
  return graph;
}

// Nodes that include each other, directly or over others; empty: none.
std::string Circle(const Graph& graph) {
  std::set<std::string> done;
  std::vector<std::string> path;
  std::string found;
  const std::function<void(const std::string&)> visit = [&](const std::string& node) {
    if (!found.empty() || done.count(node) == 1) return;
    const auto before = std::find(path.begin(), path.end(), node);
    if (before != path.end()) {
      for (auto each = before; each != path.end(); ++each) found += *each + " > ";
      found += node;
      return;
    }
    path.push_back(node);
    if (const auto to = graph.find(node); to != graph.end()) {
      for (const std::string& next : to->second) visit(next);
    }
    if (!found.empty()) return;
    path.pop_back();
    done.insert(node);
  };
  for (const auto& [node, to] : graph) visit(node);
  return found;
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
bool IsInSources(const std::map<std::string, std::string>& sources, const std::string& scope,
                 const std::string& name) {
  const std::regex word("\\b" + name + "\\b");
  const std::regex type("\\b(class|struct|namespace) ([A-Z_]+ )?" + scope + "\\b|\\b" + scope + "::");
  for (const auto& [path, text] : sources) {
    if (text.find(name) == std::string::npos || text.find(scope) == std::string::npos) continue;
    if (std::regex_search(text, word) && (scope.empty() || std::regex_search(text, type))) return true;
  }
  return false;
}

TEST_CASE("architecture.md: every path, class and function that it names exists") {
  const std::map<std::string, std::string> sources = Sources();
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

TEST_CASE("architecture: includes point one way, between folders and between units") {
  const std::map<std::string, std::string> sources = Sources();
  const Graph folders =
      Includes(sources, [](const std::string& file) { return file.substr(0, file.rfind('/')); });
  const Graph units =
      Includes(sources, [](const std::string& file) { return file.substr(0, file.rfind('.')); });
  CHECK(folders.size() > 20);
  CHECK(units.size() > 200);
  CHECK(Circle(folders) == "");
  CHECK(Circle(units) == "");
  CHECK(Circle({{"a", {"b"}}, {"b", {"c"}}, {"c", {"b"}}}) == "b > c > b");
}

// The sources but `home` that call a function or name a type.
std::set<std::string> CallersOf(const std::map<std::string, std::string>& sources, const std::string& name,
                                const std::string& home) {
  std::set<std::string> callers;
  const std::regex comment("//[^\n]*"), word("\\b" + name + "\\b");
  for (const auto& [path, text] : sources) {
    if (text.find(name) == std::string::npos || path == home + ".h" || path == home + ".cc") continue;
    if (std::regex_search(std::regex_replace(text, comment, ""), word)) callers.insert(path);
  }
  return callers;
}

TEST_CASE("architecture: runs, eval, predict, init and check read rows by the same units") {
  using Paths = std::set<std::string>;
  const std::map<std::string, std::string> sources = Sources();
  const std::string fields = "trainer/input/csv_field", header = "trainer/rows/csv_header";
  // One opener of files of rows: runs read them in passes, a trained model's in the row reader.
  CHECK(CallersOf(sources, "OpenRowFile", "trainer/rows/row_files") ==
        Paths{"trainer/rows/pass.cc", "trainer/rows/row_reader.cc"});
  CHECK(CallersOf(sources, "RowReader", "trainer/rows/row_reader") ==
        Paths{"cmd/models/evaluation.cc", "cmd/models/largest_weights.cc", "cmd/models/predict_command.cc"});
  // One splitter of records, strict for runs and models, lenient for a first look.
  CHECK(CallersOf(sources, "Lenient", "trainer/input/csv_reader") ==
        Paths{"trainer/survey/sparse_profile.cc", "trainer/survey/table_profile.cc"});
  // One rule for which texts are sparse rows.
  CHECK(CallersOf(sources, "SparseFormatOf", "trainer/survey/sparse_profile") ==
        Paths{"trainer/survey/table_profile.cc"});
  // One test for a header, and one finder of columns on top of it.
  CHECK(CallersOf(sources, "CheckHeader", header) == Paths{"trainer/rows/csv_columns.cc"});
  CHECK(CallersOf(sources, "IsHeaderOf", header) == Paths{"trainer/rows/model_columns.cc"});
  CHECK(CallersOf(sources, "FindHeader", header) == Paths{"trainer/survey/table_profile.cc"});
  CHECK(CallersOf(sources, "FindNames", "trainer/rows/csv_columns") ==
        Paths{"trainer/rows/model_columns.cc"});
  CHECK(CallersOf(sources, "FindModelColumns", "trainer/rows/model_columns") ==
        Paths{"trainer/rows/row_files.cc", "trainer/rows/row_files.h"});
  // One parser of dates.
  CHECK(CallersOf(sources, "DaysOfDate", "trainer/input/iso_date") ==
        Paths{fields + ".cc", header + ".cc", "trainer/survey/column_dates.cc",
              "trainer/survey/data_warnings.cc", "trainer/survey/table_profile.cc"});
  // One spelling of labels.
  CHECK(CallersOf(sources, "RenamedLabel", "trainer/rows/label_rules") ==
        Paths{"trainer/rows/csv_fit.cc", "trainer/rows/model_columns.cc", "trainer/rows/row_labels.cc"});
}

}  // namespace
}  // namespace dtrain
