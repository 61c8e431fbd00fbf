#include "trainer/config/load.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/config/host_map.h"
#include "trainer/config/parse.h"
#include "trainer/config/rules.h"
#include "trainer/config/user_text.h"
#include "trainer/config/yaml.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = 1 << 20;

std::string ReadAll(int file, const std::string& path) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw UserError("{}: cannot be read: {}. Give a YAML file.", path, ErrnoText(errno));
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMaxConfigBytes) {
      throw UserError("{}: more than {} bytes; that is no config. Give a YAML file.", path, kMaxConfigBytes);
    }
  }
}

// The bytes of the file. Throws UserError naming the path: missing, a directory, unreadable, too large for a
// config, or no UTF-8 text.
std::string ReadConfigText(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw UserError("{}: cannot be opened: {}. Check the path.", path, ErrnoText(errno));
  std::string text;
  try {
    text = ReadAll(file, path);
  } catch (...) {
    close(file);
    throw;
  }
  close(file);
  const size_t bad = FirstNonText(text);
  if (bad != std::string::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(bad), '\n');
    throw UserError("{}:{}: byte 0x{:02x} at offset {} is no text. Give a YAML file saved as UTF-8.", path,
                    line, static_cast<unsigned char>(text[bad]), bad);
  }
  return text;
}

// Absolute; without "..", which would lead elsewhere where a directory on the way is a link.
std::string AbsolutePath(const fs::path& base, const std::string& text) {
  const fs::path joined = fs::absolute(base / text);
  std::error_code error;
  const fs::path real =
      text.find("..") == std::string::npos ? fs::path() : fs::weakly_canonical(joined, error);
  return (real.empty() ? joined.lexically_normal() : real).string();
}

// As a message shows a value.
std::string ShownValue(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "null";
    case YamlNode::Kind::kList:
      return node.children.empty() ? "[]" : "[...]";
    case YamlNode::Kind::kMap:
      return "{...}";
    case YamlNode::Kind::kScalar:
      break;
  }
  return node.quoted ? "\"" + Shown(node.text) + "\"" : Shown(node.text);
}

// Tells null from an empty value and from a mere comment, which YAML does not.
bool SaysNull(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first != std::string::npos && (text[first] == '~' || std::tolower(text[first]) == 'n');
}

// The items of a list that is not empty, all of one type.
Value ListValue(const std::vector<Value>& items) {
  if (std::holds_alternative<int64_t>(items[0])) {
    std::vector<int64_t> numbers;
    for (const Value& item : items) numbers.push_back(std::get<int64_t>(item));
    return numbers;
  }
  std::vector<std::string> texts;
  for (const Value& item : items) texts.push_back(std::get<std::string>(item));
  return texts;
}

// Keys that have ended, and what takes their place.
struct EndedKey {
  const char* key;
  const char* successor;
};
constexpr EndedKey kEndedKeys[] = {
    {"checkpoint.writer",
     "is no key any more: every ps writes its part of a checkpoint into checkpoint.dir of ps 0, and one that "
     "does "
     "not see that directory sends its part to ps 0. Leave it out."},
};

const char* SuccessorOf(const std::string& key) {
  for (const EndedKey& ended : kEndedKeys) {
    if (key == ended.key) return ended.successor;
  }
  return nullptr;
}

// Whether the file was saved with a checkpoint, by this version or an older one.
bool IsOfCheckpoint(const std::string& path) {
  std::error_code error;
  const fs::path file(path);
  return file.filename() == "config.yaml" && fs::exists(file.parent_path() / "manifest", error);
}

class Loader {
 public:
  explicit Loader(const std::string& path) : path_(path) {}

  void ReadFile();
  void ReadSet(int number, const std::string& text);
  Config Finish(const LoadOptions& options);

 private:
  void ReadSection(const std::string& section, const YamlNode& node, const Place& place);
  void ReadKey(const Field& field, const YamlNode& node, const Place& place);
  void ReadScalar(const Field& field, const YamlNode& node, const Place& place);
  void ReadList(const Field& field, const YamlNode& node, const Place& place);
  void ReadHosts(const Field& field, const YamlNode& node, const Place& place);
  void RefuseKey(const Field& field, const YamlNode& node, const Place& place, const std::string& rule);
  void RefuseSection(const std::string& section, const YamlNode& node, const Place& place);
  void RefuseUnknown(const std::string& section, const std::string& name, const Place& place);
  void TakeMeantForGiven();
  void ForgetAllNames(const Field& field);
  void Forget(const std::string& prefix);
  void ReplaceCluster(const LoadOptions& options);

  const std::string path_;
  Problems problems_;
  GivenKeys given_;
  std::vector<std::string> meant_;  // keys and sections that unknown ones were probably meant to be
};

// The place of a node in the same source.
Place At(Place place, int line) {
  if (!place.flag()) place.line = line;
  return place;
}

void Loader::ReadFile() {
  const std::string text = ReadConfigText(path_);
  YamlNode root;
  try {
    root = ParseYaml(text);
  } catch (const YamlError& error) {
    throw UserError("{}:{}:{}: not valid YAML: {}.", path_, error.line, error.column, error.what());
  }
  if (root.kind == YamlNode::Kind::kNull) {
    throw UserError("{}: is empty. Give a YAML file with cluster, model, data and train.", path_);
  }
  ReadSection("", root, {0, root.line, path_});
}

void Loader::ReadSet(int number, const std::string& text) {
  const Place place = {number, 0, "--set " + Shown(text)};
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return problems_.Add(place, "must be key.path=value. Try --set train.batch_size=64.");
  }
  if (FirstNonText(text) != std::string::npos) {
    return problems_.Add(place, "is not UTF-8 text. Check the terminal's encoding.");
  }
  YamlNode node;
  try {
    node = ParseYaml(text.substr(equals + 1));
  } catch (const YamlError& error) {
    return problems_.Add(place,
                         fmt::format("the value is not valid YAML: {}. Quote it for YAML and for the shell: "
                                     "--set '{}=\"...\"'.",
                                     error.what(), Shown(text.substr(0, equals))));
  }
  if (node.kind == YamlNode::Kind::kNull && !SaysNull(text.substr(equals + 1))) {
    return problems_.Add(place, "has no value. Write null for the default.");
  }
  // As the file would have it: a.b=c is {a: {b: c}}.
  for (size_t end = equals; end != std::string::npos;) {
    const size_t dot = end == 0 ? std::string::npos : text.rfind('.', end - 1);
    const size_t begin = dot == std::string::npos ? 0 : dot + 1;
    node.key = text.substr(begin, end - begin);
    YamlNode parent;
    parent.kind = YamlNode::Kind::kMap;
    parent.children.push_back(std::move(node));
    node = std::move(parent);
    end = dot;
  }
  ReadSection("", node, place);
}

void Loader::ReadSection(const std::string& section, const YamlNode& node, const Place& place) {
  if (node.kind == YamlNode::Kind::kNull) {
    if (place.flag()) Forget(section);
    return;
  }
  if (node.kind != YamlNode::Kind::kMap) {
    return RefuseSection(section, node, place);
  }
  std::set<std::string> seen;
  for (const YamlNode& child : node.children) {
    const Place here = At(place, child.key_line);
    const std::string key = JoinKey(section, child.key);
    if (!seen.insert(child.key).second) {
      problems_.Add(here, fmt::format("{} is given twice in one map. Leave one.", key));
    } else if (child.key.find('.') != std::string::npos || child.key.empty()) {
      RefuseUnknown(section, child.key, here);
    } else if (const Field* field = FindField(key)) {
      ReadKey(*field, child, here);
    } else if (IsSection(key)) {
      ReadSection(key, child, here);
    } else if (const char* successor = SuccessorOf(key)) {
      if (here.flag() || !IsOfCheckpoint(path_)) problems_.Add(here, fmt::format("{} {}", key, successor));
    } else {
      RefuseUnknown(section, child.key, here);
    }
  }
}

void Loader::ReadKey(const Field& field, const YamlNode& node, const Place& place) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      if (place.flag()) ForgetAllNames(field);
      return;
    case YamlNode::Kind::kScalar:
      return ReadScalar(field, node, place);
    case YamlNode::Kind::kList:
      return ReadList(field, node, place);
    case YamlNode::Kind::kMap:
      if (field.type == FieldType::kHosts) return ReadHosts(field, node, place);
      return RefuseKey(field, node, place, RuleText(field) + ", not a map." + RemedyText(field));
  }
}

void Loader::ReadScalar(const Field& field, const YamlNode& node, const Place& place) {
  if (IsList(field.type)) {
    return RefuseKey(field, node, place, fmt::format("{}.{}", RuleText(field), RemedyText(field)));
  }
  Parsed parsed = ParseScalar(field, node.text, node.quoted);
  if (!parsed.problem.empty()) return RefuseKey(field, node, place, parsed.problem);
  if (field.type == FieldType::kInputPath || field.type == FieldType::kOutputPath) {
    const bool beside_file = field.type == FieldType::kInputPath && !place.flag();
    const fs::path base = beside_file ? fs::path(path_).parent_path() : fs::path();
    parsed.value = AbsolutePath(base, node.text);
  }
  given_[field.key] = {std::move(parsed.value), ShownValue(node), place, false};
}

void Loader::ReadList(const Field& field, const YamlNode& node, const Place& place) {
  if (!IsList(field.type)) {
    return RefuseKey(field, node, place, RuleText(field) + ", not a list." + RemedyText(field));
  }
  std::vector<Value> items;
  bool bad = false;
  for (const YamlNode& item : node.children) {
    Parsed parsed;
    if (item.kind == YamlNode::Kind::kScalar) {
      parsed = ParseScalar(field, item.text, item.quoted);
    } else {
      parsed.problem = fmt::format("{}.{}", RuleText(field), RemedyText(field));
    }
    if (!parsed.problem.empty()) {
      problems_.Add(At(place, item.line), fmt::format("{}[{}] = {}; {}", field.key, items.size(),
                                                      ShownValue(item), parsed.problem));
      bad = true;
    }
    items.push_back(std::move(parsed.value));
  }
  if (items.empty()) {
    return RefuseKey(field, node, place, fmt::format("must not be empty.{}", RemedyText(field)));
  }
  given_[field.key] = {bad ? Value() : ListValue(items), ShownValue(node), place, bad};
}

// A flag changes the machines and keys that it names.
void Loader::ReadHosts(const Field& field, const YamlNode& node, const Place& place) {
  const auto before = given_.find(field.key);
  const bool add = before != given_.end() && !before->second.bad;
  LaunchHosts hosts = add ? std::get<LaunchHosts>(before->second.value) : LaunchHosts();
  const std::vector<HostProblem> wrong = ReadHostMap(field.key, node, &hosts);
  for (const HostProblem& problem : wrong) problems_.Add(At(place, problem.line), problem.text);
  given_[field.key] = {std::move(hosts), "{...}", place, !wrong.empty()};
  if (!wrong.empty()) given_[field.key].value = Value();
}

void Loader::RefuseKey(const Field& field, const YamlNode& node, const Place& place,
                       const std::string& rule) {
  problems_.Add(place, fmt::format("{} = {}; {}", field.key, ShownValue(node), rule));
  given_[field.key] = {Value(), ShownValue(node), place, true};
}

void Loader::RefuseSection(const std::string& section, const YamlNode& node, const Place& place) {
  const std::string what = section.empty() ? "the file" : section;
  const std::vector<std::string> names = NamesIn(section);
  problems_.Add(place, fmt::format("{} = {}; must be a map with {}. Write \"{}: ...\" under it.", what,
                                   ShownValue(node), ListText(names, "and"), names.front()));
  for (const Field& field : Fields()) {
    const bool inside = section.empty() || field.key.compare(0, section.size() + 1, section + ".") == 0;
    if (inside) given_[field.key] = {Value(), "", place, true};  // not missing
  }
}

void Loader::RefuseUnknown(const std::string& section, const std::string& name, const Place& place) {
  const Meant meant = DidYouMean(section, name);
  meant_.insert(meant_.end(), meant.names.begin(), meant.names.end());
  std::string remedy = meant.question;
  if (remedy.empty()) remedy = fmt::format("this version knows {}.", ListText(NamesIn(section), "and"));
  const std::string in = section.empty() ? "" : " in " + section;
  problems_.Add(place, fmt::format("unknown key \"{}\"{}; {}", Shown(name), in, remedy));
}

// What only a slip of the fingers has made missing is no problem of its own.
void Loader::TakeMeantForGiven() {
  for (const std::string& name : meant_) {
    for (const Field& field : Fields()) {
      const bool inside = field.key == name || field.key.compare(0, name.size() + 1, name + ".") == 0;
      if (inside) given_.emplace(field.key, GivenKey{Value(), "", {0, 0, path_}, true});
    }
  }
}

void Loader::ForgetAllNames(const Field& field) {
  const std::string name = field.alias_of.empty() ? field.key : field.alias_of;
  for (const Field& other : Fields()) {
    if (other.key == name || other.alias_of == name) Forget(other.key);
  }
}

// Back to the defaults: a key, or all keys of a section.
void Loader::Forget(const std::string& prefix) {
  for (auto it = given_.begin(); it != given_.end();) {
    const bool inside = it->first == prefix || it->first.compare(0, prefix.size() + 1, prefix + ".") == 0;
    it = inside ? given_.erase(it) : std::next(it);
  }
}

void Loader::ReplaceCluster(const LoadOptions& options) {
  const ClusterConfig cluster = options.new_cluster(ConfigOf(given_).cluster);
  const Place place = {1, 0, options.cluster_source};
  given_["cluster.ps"] = {cluster.ps, "[...]", place, false};
  given_["cluster.worker"] = {cluster.worker, "[...]", place, false};
}

Config Loader::Finish(const LoadOptions& options) {
  if (options.new_cluster) ReplaceCluster(options);
  TakeMeantForGiven();
  const Config config = Resolve(path_, options, &given_, &problems_);
  if (options.log_json != nullptr) *options.log_json = config.log.json;
  problems_.ThrowIfAny();
  return config;
}

}  // namespace

Config LoadConfig(const std::string& path, const std::vector<std::string>& sets, const LoadOptions& options) {
  Loader loader(path);
  loader.ReadFile();
  int number = 0;
  for (const std::string& set : sets) loader.ReadSet(++number, set);
  return loader.Finish(options);
}

}  // namespace dtrain
