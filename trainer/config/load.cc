#include "trainer/config/load.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/config/fields.h"
#include "trainer/config/host_map.h"
#include "trainer/config/parse.h"
#include "trainer/config/rules.h"
#include "trainer/config/user_text.h"
#include "trainer/config/yaml.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = 1 << 20;
constexpr size_t kReadBytes = 16 << 10;

// What to do with a file that is no config and is not named like one: it may be a table.
std::string TableAdvice(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".yaml" || ending == ".yml") return "";
  return fmt::format(
      " If it is a table, dtrain init {0} writes a config for it, and dtrain check {0} shows it.", path);
}

// The bytes of the file. Throws UserError naming the path: missing, a directory, unreadable, too large for a
// config, or no UTF-8 text.
std::string ReadConfigText(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (file == nullptr) {
    const int error = errno;
    throw UserError("{}: cannot be opened: {}. Check the path.{}", path, ErrnoText(error),
                    error == ENOENT ? SimilarPathHint(path) : "");
  }
  std::string text;
  for (size_t read = 1; read > 0 && text.size() <= kMaxConfigBytes;) {
    const size_t before = text.size();
    text.resize(before + kReadBytes);
    read = std::fread(text.data() + before, 1, kReadBytes, file.get());
    text.resize(before + read);
  }
  if (std::ferror(file.get()) != 0) {
    throw UserError("{}: cannot be read: {}. Give a YAML file.", path, ErrnoText(errno));
  }
  if (text.size() > kMaxConfigBytes) {
    throw UserError("{}: more than {} bytes; that is no config. Give a YAML file.{}", path, kMaxConfigBytes,
                    TableAdvice(path));
  }
  const size_t bad = FirstNonText(text);
  if (bad != std::string::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(bad), '\n');
    throw UserError("{}:{}: byte 0x{:02x} at offset {} is no text. Give a YAML file saved as UTF-8.{}", path,
                    line, static_cast<unsigned char>(text[bad]), bad, TableAdvice(path));
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

// The remedy of a --set without a key or without "=".
std::string SetAdvice(const std::string& text) {
  if (text.empty() || text[0] == '=') {
    return "Write the key in front of the =, as in --set train.batch_size=64.";
  }
  const Field* const field = FindField(text);
  const std::string example = field == nullptr ? "" : ExampleOf(*field);
  return example.empty() ? fmt::format("Write --set {}=VALUE.", Shown(text))
                         : fmt::format("Try --set {}={}.", text, example);
}

// What takes the place of a key that has ended; null for any other.
const char* SuccessorOf(const std::string& key) {
  if (key != "checkpoint.writer") return nullptr;
  return "is no key any more: every ps writes its part of a checkpoint into checkpoint.dir of ps 0, and one "
         "that does not see that directory sends its part to ps 0. Leave it out.";
}

// Whether the file was saved with a checkpoint, by this version or an older one.
bool IsOfCheckpoint(const std::string& path) {
  std::error_code error;
  const fs::path file(path);
  return file.filename() == "config.yaml" && fs::exists(file.parent_path() / "manifest", error);
}

class Loader {
 public:
  explicit Loader(const std::string& path) { draft_.path = path; }

  void ReadFile();
  void ReadSet(int number, const std::string& text);
  Config Finish(const LoadOptions& options);

 private:
  void ReadSection(const std::string& section, const YamlNode& node, const Place& place);
  void ReadKey(const Field& field, const YamlNode& node, const Place& place);
  void ReadCompress(const YamlNode& node, const Place& place);
  Value Located(const Field& field, Value value, const Place& place) const;
  void ReadScalar(const Field& field, const YamlNode& node, const Place& place);
  void ReadList(const Field& field, const YamlNode& node, const Place& place);
  void ReadHosts(const Field& field, const YamlNode& node, const Place& place);
  void Accept(const Field& field, const Value& value, const YamlNode& node, const Place& place);
  bool HasOtherName(const Field& field, const Value& value, const Place& place);
  void MarkBad(const Field& field, const std::string& shown, const Place& place);
  void RefuseKey(const Field& field, const YamlNode& node, const Place& place, const std::string& rule);
  void RefuseSection(const std::string& section, const YamlNode& node, const Place& place);
  void RefuseUnknown(const std::string& section, const std::string& name, const Place& place);
  void ResetKey(const Field& field);
  void ResetSection(const std::string& section);
  void SetCluster(const std::string& source, const ClusterConfig& cluster);

  Draft draft_;
  // Keys whose two names say different things, by Field::Name(): the place and the report. What is given
  // later settles it.
  std::map<std::string, std::pair<Place, std::string>> contradictions_;
};

// The place of a node in the same source.
Place At(Place place, int line) {
  if (!place.flag()) place.line = line;
  return place;
}

void Loader::ReadFile() {
  const std::string text = ReadConfigText(draft_.path);
  YamlNode root;
  try {
    root = ParseYaml(text);
  } catch (const YamlError& error) {
    throw UserError("{}:{}:{}: not valid YAML: {}.{}", draft_.path, error.line, error.column, error.what(),
                    TableAdvice(draft_.path));
  }
  if (const std::string advice = TableAdvice(draft_.path);
      root.kind == YamlNode::Kind::kScalar && !advice.empty()) {
    throw UserError("{}: is no config: it has no keys. Give a YAML file.{}", draft_.path, advice);
  }
  if (root.kind == YamlNode::Kind::kNull) {
    throw UserError("{}: is empty. Give a YAML file with cluster, model, data and train.", draft_.path);
  }
  ReadSection("", root, {0, root.line, draft_.path});
}

void Loader::ReadSet(int number, const std::string& text) {
  const Place place = {number, 0, "--set " + Shown(text)};
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return draft_.problems.Add(place, "must be KEY=VALUE. " + SetAdvice(text));
  }
  if (FirstNonText(text) != std::string::npos) {
    return draft_.problems.Add(place, "is not UTF-8 text. Check the terminal's encoding.");
  }
  // A single - begins a list in YAML. Here it means standard input.
  const std::string value = text.substr(equals + 1);
  YamlNode node;
  try {
    node = ParseYaml(value == "-" ? "\"-\"" : value);
  } catch (const YamlError& error) {
    return draft_.problems.Add(
        place,
        fmt::format(
            "the value is not valid YAML: {}. Quote it for YAML and for the shell: --set '{}=\"...\"'.",
            error.what(), Shown(text.substr(0, equals))));
  }
  if (node.kind == YamlNode::Kind::kNull && !SaysNull(text.substr(equals + 1))) {
    return draft_.problems.Add(place, "has no value. Write null for the default.");
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
    if (place.flag()) ResetSection(section);
    return;
  }
  const Field* const kind = FindField(JoinKey(section, "kind"));
  if (node.kind == YamlNode::Kind::kScalar && kind != nullptr) return ReadScalar(*kind, node, place);
  if (node.kind == YamlNode::Kind::kScalar && section == "net.compress") return ReadCompress(node, place);
  if (node.kind != YamlNode::Kind::kMap) return RefuseSection(section, node, place);
  std::set<std::string> seen;
  for (const YamlNode& child : node.children) {
    const Place here = At(place, child.key_line);
    const std::string key = JoinKey(section, child.key);
    if (!seen.insert(child.key).second) {
      draft_.problems.Add(here, fmt::format("{} is given twice in one map. Leave one.", key));
    } else if (child.key.find('.') != std::string::npos || child.key.empty()) {
      RefuseUnknown(section, child.key, here);
    } else if (const Field* field = FindField(key)) {
      ReadKey(*field, child, here);
    } else if (!NamesIn(key).empty()) {
      ReadSection(key, child, here);
    } else if (const char* successor = SuccessorOf(key)) {
      const bool refused = here.flag() || !IsOfCheckpoint(draft_.path);
      if (refused) draft_.problems.Add(here, fmt::format("{} {}", key, successor));
    } else {
      RefuseUnknown(section, child.key, here);
    }
  }
}

// One form for both directions. A worker needs all weights, so with topk they travel as int8.
void Loader::ReadCompress(const YamlNode& node, const Place& place) {
  const Field& push = *FindField("net.compress.push");
  ReadScalar(push, node, place);
  if (draft_.given.at(push.key).bad) return;
  YamlNode of_weights = node;
  if (node.text == "topk") of_weights.text = "int8";
  ReadScalar(*FindField("net.compress.pull"), of_weights, place);
}

void Loader::ReadKey(const Field& field, const YamlNode& node, const Place& place) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      if (place.flag()) ResetKey(field);
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

// Whether a file is there; of a pattern, the directory that it names.
bool IsThere(const fs::path& path) {
  std::error_code none;
  const bool pattern = path.filename().string().find_first_of("*?[") != std::string::npos;
  return fs::exists(path, none) || (pattern && fs::exists(path.parent_path(), none));
}

// Data that are not at `path` may be below the directory that DTRAIN_DATA names: under their relative path
// `text` or, since our configs look for shared/data beside the checkout, under what follows that. Returns
// where they are then; else `path`.
std::string InDataDirectory(const std::string& path, const std::string& text) {
  const char* const directory = std::getenv("DTRAIN_DATA");
  if (directory == nullptr || *directory == '\0' || IsThere(path)) return path;
  const std::string shared = "/shared/data/";
  const size_t at = path.rfind(shared);
  const bool is_shared = at != std::string::npos;
  if (!is_shared && (fs::path(text).is_absolute() || text.compare(0, 2, "..") == 0)) return path;
  const std::string there = AbsolutePath(directory, is_shared ? path.substr(at + shared.size()) : text);
  std::error_code none;
  const bool expected = is_shared && !fs::exists(fs::path(path).parent_path(), none);
  return expected || IsThere(there) ? there : path;
}

// Returns an absolute path for a path; any other value, a command and standard input as they are.
Value Loader::Located(const Field& field, Value value, const Place& place) const {
  const bool input = field.type == FieldType::kInputPath || field.type == FieldType::kInputPaths;
  if (!input && field.type != FieldType::kOutputPath) return value;
  const std::string& text = std::get<std::string>(value);
  if (field.type == FieldType::kInputPaths && IsPipe(text)) return value;
  if (!input || place.flag()) return AbsolutePath(fs::path(), text);
  const std::string path = AbsolutePath(fs::path(draft_.path).parent_path(), text);
  return field.type == FieldType::kInputPaths ? InDataDirectory(path, text) : path;
}

void Loader::ReadScalar(const Field& field, const YamlNode& node, const Place& place) {
  const bool paths = field.type == FieldType::kInputPaths;
  if (IsList(field.type) && !paths) return RefuseKey(field, node, place, RuleAndRemedy(field));
  Parsed parsed = ParseScalar(field, node);
  if (!parsed.problem.empty()) return RefuseKey(field, node, place, parsed.problem);
  const bool word = std::count(field.choices.begin(), field.choices.end(), node.text) > 0;
  if (!word) parsed.value = Located(field, std::move(parsed.value), place);
  if (paths) parsed.value = std::vector<std::string>{std::get<std::string>(parsed.value)};
  Accept(field, parsed.value, node, place);
}

void Loader::ReadList(const Field& field, const YamlNode& node, const Place& place) {
  if (!IsList(field.type)) {
    return RefuseKey(field, node, place, RuleText(field) + ", not a list." + RemedyText(field));
  }
  std::vector<Value> items;
  bool bad = false;
  for (const YamlNode& item : node.children) {
    Parsed parsed = ParseScalar(field, item);
    if (!parsed.problem.empty()) {
      draft_.problems.Add(At(place, item.line), fmt::format("{}[{}] = {}; {}", field.key, items.size(),
                                                            ShownValue(item), parsed.problem));
      bad = true;
    }
    items.push_back(parsed.problem.empty() ? Located(field, std::move(parsed.value), place) : Value());
  }
  if (items.empty()) {
    return RefuseKey(field, node, place, fmt::format("must not be empty.{}", RemedyText(field)));
  }
  if (bad) return MarkBad(field, ShownValue(node), place);
  Accept(field, ListValue(items), node, place);
}

// A flag changes the machines and keys that it names.
void Loader::ReadHosts(const Field& field, const YamlNode& node, const Place& place) {
  LaunchHosts hosts = draft_.config.launch.hosts;
  const std::vector<HostProblem> wrong = ReadHostMap(field.key, node, &hosts);
  for (const HostProblem& problem : wrong) draft_.problems.Add(At(place, problem.line), problem.text);
  if (!wrong.empty()) return MarkBad(field, ShownValue(node), place);
  Accept(field, hosts, node, place);
}

void Loader::Accept(const Field& field, const Value& value, const YamlNode& node, const Place& place) {
  contradictions_.erase(field.Name());
  if (HasOtherName(field, value, place)) return;
  field.set(value, &draft_.config);
  draft_.given[field.Name()] = {field.key, ShownValue(node), place, false};
}

// Whether `field` is another name of a key that the same source has given by its proper name. The two names
// must say the same in the file, and so in the flags; a flag beats the file, whichever name it has.
bool Loader::HasOtherName(const Field& field, const Value& value, const Place& place) {
  const auto found = draft_.given.find(field.Name());
  if (found == draft_.given.end()) return false;
  const Given& other = found->second;
  if (other.bad || other.key == field.key || other.place.flag() != place.flag()) return false;
  const bool is_alias = !field.alias_of.empty();
  const Value before = field.get(draft_.config);
  if (value != before) {
    contradictions_[field.Name()] = {
        is_alias ? place : other.place,
        fmt::format("{} = {}; is another name for {}, which is {}. Leave one of them.",
                    is_alias ? field.key : other.key, ValueText(field, is_alias ? value : before),
                    field.Name(), ValueText(field, is_alias ? before : value))};
  }
  return is_alias;
}

// For what is reported already: it is not missing, and no rule is about it.
void Loader::MarkBad(const Field& field, const std::string& shown, const Place& place) {
  ResetKey(field);
  draft_.given[field.Name()] = {field.key, shown, place, true};
}

void Loader::RefuseKey(const Field& field, const YamlNode& node, const Place& place,
                       const std::string& rule) {
  draft_.problems.Add(place, fmt::format("{} = {}; {}", field.key, ShownValue(node), rule));
  MarkBad(field, ShownValue(node), place);
}

void Loader::RefuseSection(const std::string& section, const YamlNode& node, const Place& place) {
  const std::string what = section.empty() ? "the file" : section;
  const std::vector<std::string> names = NamesIn(section);
  draft_.problems.Add(place, fmt::format("{} = {}; must be a map with {}. Write \"{}: ...\" under it.", what,
                                         ShownValue(node), ListText(names, "and"), names.front()));
  for (const Field* field : FieldsIn(section)) MarkBad(*field, "", place);
}

// What only a slip of the fingers has made missing is no problem of its own.
void Loader::RefuseUnknown(const std::string& section, const std::string& name, const Place& place) {
  const Meant meant = DidYouMean(section, name);
  for (const std::string& full : meant.names) {
    for (const Field* field : FieldsIn(full)) {
      if (draft_.given.count(field->Name()) == 0) MarkBad(*field, "", {0, 0, draft_.path});
    }
  }
  std::string remedy = meant.question;
  if (remedy.empty()) remedy = fmt::format("this version knows {}.", ListText(NamesIn(section), "and"));
  const std::string in = section.empty() ? "" : " in " + section;
  draft_.problems.Add(place, fmt::format("unknown key \"{}\"{}; {}", Shown(name), in, remedy));
}

// Back to the default, whatever the name that the key was given by.
void Loader::ResetKey(const Field& field) {
  field.set(Value(), &draft_.config);
  draft_.given.erase(field.Name());
  contradictions_.erase(field.Name());
}

void Loader::ResetSection(const std::string& section) {
  for (const Field* field : FieldsIn(section)) {
    const auto found = draft_.given.find(field->Name());
    if (found != draft_.given.end() && found->second.key == field->key) ResetKey(*field);
  }
}

void Loader::SetCluster(const std::string& source, const ClusterConfig& cluster) {
  draft_.config.cluster.ps = cluster.ps;
  draft_.config.cluster.worker = cluster.worker;
  for (const char* key : {"cluster.ps", "cluster.worker"}) {
    draft_.given[key] = {key, "[...]", {1, 0, source}, false};
  }
}

// In a file without a header there are no names: digits in quotes are the column's number, too. So they are
// in a checkpoint of older versions, which wrote both alike.
void NumberColumns(bool is_old, DataConfig* data) {
  const auto number = [](std::string* column) { *column = ColumnNameIn(*column); };
  if (is_old || !data->test.header) number(&data->test.label);
  if (!is_old && data->train.header) return;
  number(&data->train.label);
  number(&data->weight);
  for (auto* columns : {&data->ignore, &data->categories, &data->dates}) {
    for (std::string& column : *columns) number(&column);
  }
}

Config Loader::Finish(const LoadOptions& options) {
  RunConfig& run = draft_.config.run;
  if (run.dir.empty()) run.dir = options.made_up_run;
  const bool given = draft_.given.count("checkpoint.dir") > 0;
  if (run.has_directory() && draft_.config.checkpoint.dir.empty() && !given) {
    draft_.config.checkpoint.dir = run.dir + "/checkpoints";
  }
  if (options.new_cluster) SetCluster(options.cluster_source, options.new_cluster(draft_.config.cluster));
  for (const auto& [key, report] : contradictions_) draft_.problems.Add(report.first, report.second);
  const bool is_old = IsOfCheckpoint(draft_.path) && draft_.given.count("data.label_type") == 0;
  NumberColumns(is_old, &draft_.config.data);
  // The rows that a run can watch; those of data.test are for the end.
  const DataConfig& data = draft_.config.data;
  const bool holds_out = data.validation > 0 || data.validation_share > 0;
  if (draft_.given.count("eval.on") == 0 && holds_out) draft_.config.eval.on = EvalOn::kValidation;
  draft_.config.data.whole_keys = draft_.config.model.table == TableKind::kHash;
  CheckRules(options, &draft_);
  if (options.log_json != nullptr) *options.log_json = draft_.config.log.json;
  draft_.problems.ThrowIfAny();
  return draft_.config;
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
