#include "trainer/checkpoint/checkpoint_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <string_view>

namespace dtrain {
namespace {

constexpr std::string_view kStep = "step-";
constexpr std::string_view kReplaced = "replaced-";
constexpr std::string_view kTemporary = ".tmp-";

bool RemovePrefix(std::string_view prefix, std::string_view* text) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string CheckpointName(int64_t step) { return fmt::format("{}{:09}", kStep, step); }

std::string ReplacedName(const std::string& name, int64_t sequence) {
  return fmt::format("{}{}-{}", kReplaced, name, sequence);
}

bool IsCheckpointName(const std::string& name) {
  std::string_view rest = name;
  const bool replaced = RemovePrefix(kReplaced, &rest);
  if (!RemovePrefix(kStep, &rest)) return false;
  if (!replaced) return IsDigits(rest);
  const size_t dash = rest.find('-');
  return dash != rest.npos && IsDigits(rest.substr(0, dash)) && IsDigits(rest.substr(dash + 1));
}

bool IsReplacedName(const std::string& name) {
  return IsCheckpointName(name) && name.compare(0, kReplaced.size(), kReplaced) == 0;
}

std::string TemporaryName(const std::string& name, const std::string& token) {
  return fmt::format(".{}{}{}", name, kTemporary, token);
}

std::string RandomToken() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

bool IsTemporaryName(const std::string& name) {
  const size_t at = name.find(kTemporary);
  return name[0] == '.' && at != name.npos && IsCheckpointName(name.substr(1, at - 1));
}

}  // namespace dtrain
