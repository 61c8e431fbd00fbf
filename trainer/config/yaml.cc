#include "trainer/config/yaml.h"

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>
#include <utility>

namespace dtrain {
namespace {

constexpr int kMaxNodes = 100000;
constexpr size_t kMaxDepth = 32;
constexpr size_t kMaxCopiedBytes = 4 << 20;

[[noreturn]] void Refuse(const YAML::Mark& mark, const std::string& text) {
  throw YamlError(mark.line + 1, mark.column + 1, text);
}

struct Extent {
  int nodes = 1;
  size_t bytes = 0;  // of texts and keys
};

Extent ExtentOf(const YamlNode& node) {
  Extent sum{1, node.text.size() + node.key.size()};
  for (const YamlNode& child : node.children) {
    const Extent extent = ExtentOf(child);
    sum.nodes += extent.nodes;
    sum.bytes += extent.bytes;
  }
  return sum;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) Refuse(mark, "a second document or value begins here. Leave one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(mark, NewNode(YamlNode::Kind::kNull, mark, "?"), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) Refuse(mark, "an alias inside the value that it names. Write the value out");
    YamlNode copy = Copy(mark, found->second);
    copy.line = mark.line + 1;
    Add(mark, std::move(copy), 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = NewNode(YamlNode::Kind::kScalar, mark, tag);
    node.text = value;
    node.quoted = tag == "!";
    Add(mark, std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, NewNode(YamlNode::Kind::kList, mark, tag), anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, NewNode(YamlNode::Kind::kMap, mark, tag), anchor);
  }
  void OnMapEnd() override { Close(); }

  YamlNode TakeRoot() { return std::move(root_); }

 private:
  // A list or map that is being read, and in a map the key whose value comes next.
  struct OpenNode {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    YamlNode key;
  };

  static YamlNode NewNode(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") Refuse(mark, fmt::format("tag {}. Leave it out", tag));
    YamlNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    return node;
  }

  void Open(const YAML::Mark& mark, YamlNode node, YAML::anchor_t anchor) {
    if (open_.size() >= kMaxDepth) Refuse(mark, "nested too deeply. Sections are at most three deep");
    if (ExpectsKey()) Refuse(mark, "a key must be a name, not a list or map. Check brackets and colons");
    open_.push_back({std::move(node), anchor, false, {}});
  }

  void Close() {
    OpenNode last = std::move(open_.back());
    open_.pop_back();
    YAML::Mark mark;
    mark.line = last.node.line - 1;
    Add(mark, std::move(last.node), last.anchor);
  }

  bool ExpectsKey() const {
    return !open_.empty() && open_.back().node.kind == YamlNode::Kind::kMap && !open_.back().has_key;
  }

  void CountNodes(const YAML::Mark& mark, int count) {
    nodes_ += count;
    if (nodes_ <= kMaxNodes) return;
    Refuse(mark, fmt::format("more than {} values, copies by anchors and aliases included. Leave out what "
                             "no key needs",
                             kMaxNodes));
  }

  // Counts the copy before there is memory for it.
  YamlNode Copy(const YAML::Mark& mark, const YamlNode& node) {
    const Extent extent = ExtentOf(node);
    CountNodes(mark, extent.nodes);
    copied_bytes_ += extent.bytes;
    if (copied_bytes_ <= kMaxCopiedBytes) return node;
    Refuse(mark, fmt::format("anchors and aliases copy more than {} bytes. Write short values out, and leave "
                             "out what no key needs",
                             kMaxCopiedBytes));
  }

  void Add(const YAML::Mark& mark, YamlNode node, YAML::anchor_t anchor) {
    CountNodes(mark, 1);
    if (anchor != 0) anchors_[anchor] = Copy(mark, node);
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    if (ExpectsKey()) {
      if (node.kind != YamlNode::Kind::kScalar)
        Refuse(mark, "a key must be a name. Put 'null' or '~' in quotes, or leave it out");
      parent.key = std::move(node);
      parent.has_key = true;
      return;
    }
    if (parent.has_key) {
      node.key = parent.key.text;
      node.key_line = parent.key.line;
      parent.has_key = false;
    }
    parent.node.children.push_back(std::move(node));
  }

  int documents_ = 0;
  int nodes_ = 0;
  size_t copied_bytes_ = 0;
  YamlNode root_;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
};

// Refuses a tab that indents one of the lines up to `mark`, which the parser reports as something else.
void RefuseTabs(const std::string& text, const YAML::Mark& mark) {
  std::istringstream stream(text);
  std::string line;
  for (YAML::Mark at; at.line <= mark.line && std::getline(stream, line); ++at.line) {
    at.column = static_cast<int>(line.find_first_not_of(' '));
    if (at.column < 0 || line[static_cast<size_t>(at.column)] != '\t') continue;
    Refuse(at, "a tab indents this line. Write spaces, as many as in the lines beside it");
  }
}

}  // namespace

YamlNode ParseYaml(const std::string& text) {
  std::istringstream stream(text);
  TreeBuilder builder;
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    RefuseTabs(text, error.mark);
    Refuse(error.mark, error.msg + ". Check indentation, colons, brackets and quotes");
  }
  return builder.TakeRoot();
}

}  // namespace dtrain
