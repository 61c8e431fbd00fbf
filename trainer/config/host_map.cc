#include "trainer/config/host_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "trainer/config/fields.h"
#include "trainer/config/parse.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

const std::vector<std::string> kNames = {"user", "address", "directory", "program", "environment", "device"};

bool IsVariable(const std::string& name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), fits);
}

// What a command line of another machine cannot hold. Empty: nothing.
std::string TextProblem(const std::string& text) {
  const bool plain =
      std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  return plain ? "" : "must be on one line, without control characters. Leave them out.";
}

class Reader {
 public:
  explicit Reader(LaunchHosts* hosts) : hosts_(*hosts) {}

  void ReadAll(const std::string& key, const YamlNode& node) {
    ForEach(key, node, [&](const std::string& host_key, const YamlNode& child) {
      if (child.kind == YamlNode::Kind::kNull) {
        hosts_.erase(child.key);
      } else if (child.key.empty() || !TextProblem(child.key).empty()) {
        Refuse(
            child.key_line,
            fmt::format(
                "{}; \"{}\" is no name of a machine. Write the name that stands in the cluster's addresses.",
                key, Shown(child.key)));
      } else if (IsMap(host_key, child, "user: ann")) {
        ReadHost(host_key, child, &hosts_[child.key]);
      }
    });
  }

  std::vector<HostProblem> problems() { return std::move(problems_); }

 private:
  void Refuse(int line, std::string text) { problems_.push_back({line, std::move(text)}); }

  bool IsMap(const std::string& key, const YamlNode& node, const char* example) {
    if (node.kind == YamlNode::Kind::kMap) return true;
    Refuse(node.key_line, fmt::format("{}; must be a map. Write {}: {{{}}}.", key, node.key, example));
    return false;
  }

  template <typename Take>
  void ForEach(const std::string& key, const YamlNode& node, const Take& take) {
    std::set<std::string> seen;
    for (const YamlNode& child : node.children) {
      const std::string full = key + "." + Shown(child.key);
      if (seen.insert(child.key).second) {
        take(full, child);
      } else {
        Refuse(child.key_line, fmt::format("{} is given twice in one map. Leave one.", full));
      }
    }
  }

  void ReadHost(const std::string& host_key, const YamlNode& node, LaunchHost* host) {
    ForEach(host_key, node, [&](const std::string& key, const YamlNode& child) {
      if (child.key == "user") return ReadText(key, child, &host->user);
      if (child.key == "address") return ReadText(key, child, &host->address);
      if (child.key == "program") return ReadText(key, child, &host->program);
      if (child.key == "directory") return ReadDirectory(key, child, &host->directory);
      if (child.key == "environment") return ReadVariables(key, child, &host->environment);
      if (child.key == "device") return ReadDevice(key, child, &host->device);
      const std::string close = ClosestName(child.key, kNames);
      Refuse(child.key_line,
             fmt::format("unknown key \"{}\" in {}; {}", Shown(child.key), host_key,
                         close.empty() ? fmt::format("a machine has {}.", ListText(kNames, "and"))
                                       : fmt::format("did you mean \"{}\"?", close)));
    });
  }

  void Take(const std::string& key, const YamlNode& node, const std::string& problem, std::string* text) {
    if (!problem.empty()) {
      return Refuse(node.key_line, fmt::format("{} = {}; {}", key, Shown(node.text), problem));
    }
    *text = node.text;
  }

  void ReadText(const std::string& key, const YamlNode& node, std::string* text) {
    if (node.kind == YamlNode::Kind::kNull) return text->clear();
    if (node.kind != YamlNode::Kind::kScalar || node.text.empty()) {
      return Refuse(node.key_line, key + "; must be text. Write null for the default.");
    }
    Take(key, node, TextProblem(node.text), text);
  }

  void ReadDirectory(const std::string& key, const YamlNode& node, std::string* directory) {
    if (node.text.empty() || node.text[0] == '/') return ReadText(key, node, directory);
    Take(key, node, "must begin with /. Write the whole path, as it is on that machine.", directory);
  }

  void ReadVariables(const std::string& key, const YamlNode& node,
                     std::map<std::string, std::string>* variables) {
    if (node.kind == YamlNode::Kind::kNull) return variables->clear();
    if (!IsMap(key, node, "OMP_NUM_THREADS: 1")) return;
    ForEach(key, node, [&](const std::string& full, const YamlNode& child) {
      if (!IsVariable(child.key)) {
        return Refuse(child.key_line,
                      fmt::format("{}; a variable's name is letters, digits and _. Rename it.", full));
      }
      if (child.kind == YamlNode::Kind::kNull) {
        variables->erase(child.key);
      } else if (child.kind != YamlNode::Kind::kScalar) {
        Refuse(child.key_line, fmt::format("{}; must be text. Put it in quotes.", full));
      } else {
        Take(full, child, TextProblem(child.text), &(*variables)[child.key]);
      }
    });
  }

  void ReadDevice(const std::string& key, const YamlNode& node, std::map<std::string, std::string>* device) {
    if (node.kind == YamlNode::Kind::kNull) return device->clear();
    if (!IsMap(key, node, "ids: [0, 1]")) return;
    ForEach(key, node, [&](const std::string& full, const YamlNode& child) {
      const Field* const field = FindField(JoinKey("device", child.key));
      if (field == nullptr) {
        return Refuse(child.key_line,
                      fmt::format("{}; device has {}.", full, ListText(NamesIn("device"), "and")));
      }
      if (child.kind == YamlNode::Kind::kNull) {
        device->erase(child.key);
      } else {
        ReadDeviceKey(full, *field, child, &(*device)[child.key]);
      }
    });
  }

  void ReadDeviceKey(const std::string& key, const Field& field, const YamlNode& node, std::string* text) {
    const bool list = node.kind == YamlNode::Kind::kList;
    if (list != IsList(field.type) || node.kind == YamlNode::Kind::kMap || (list && node.children.empty())) {
      return Refuse(node.key_line, fmt::format("{}; {}", key, RuleAndRemedy(field)));
    }
    std::vector<std::string> values;
    for (const YamlNode& item : list ? node.children : std::vector<YamlNode>{node}) {
      const Parsed parsed = ParseScalar(field, item);
      if (!parsed.problem.empty()) {
        return Refuse(node.key_line, fmt::format("{} = {}; {}", key, Shown(item.text), parsed.problem));
      }
      values.push_back(ValueText(field, parsed.value));
    }
    *text = list ? fmt::format("[{}]", fmt::join(values, ", ")) : values.front();
  }

  LaunchHosts& hosts_;
  std::vector<HostProblem> problems_;
};

}  // namespace

std::vector<HostProblem> ReadHostMap(const std::string& key, const YamlNode& node, LaunchHosts* hosts) {
  Reader reader(hosts);
  reader.ReadAll(key, node);
  return reader.problems();
}

}  // namespace dtrain
