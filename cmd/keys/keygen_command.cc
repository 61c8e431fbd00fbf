#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "cmd/common/load_config.h"
#include "cmd/keys/keys.h"
#include "trainer/config/config.h"
#include "trainer/keys/cluster_keys.h"

namespace dtrain {
namespace {

void Replace(const KeyDirectory& keys, const std::string& name) {
  const std::vector<std::string> old_lines = keys.Replace(name);
  fmt::print(
      "{0}: a new key of {1}. To change it without stopping the run:\n"
      "  1. put the new {2} on every machine; the tasks read it within two seconds\n"
      "  2. put {3} on the machine of {1}, and start {1} again\n"
      "  3. remove this from {2} on every machine:\n",
      keys.path(), name, keys.ListPath(), keys.SecretPath(name));
  for (const std::string& line : old_lines) fmt::print("     {}", line);
}

std::string HolderOf(const ClusterConfig& cluster, const std::string& name) {
  if (name == "worker") return "any other worker";
  if (name == "status") return "an operator";
  for (const TaskId task : TasksOf(cluster)) {
    const std::string address = TaskName(task) == name ? KnownAddress(cluster, task) : "";
    if (!address.empty()) return fmt::format("{} ({})", name, address);
  }
  return name;
}

void PrintUse(const KeyDirectory& keys, const ClusterConfig& cluster) {
  fmt::print(
      "\nAdd to the config, with the directory in which each machine has them:\n"
      "  security: {{keys: \"{}\"}}\n"
      "\nEach machine needs {} and the secret key of its task, which only its user may read:\n",
      keys.path(), keys.ListPath());
  for (const std::string& name : keys.names()) {
    fmt::print("  {:<32} {}\n", HolderOf(cluster, name), keys.SecretPath(name));
  }
}

}  // namespace

int RunKeygenCommand(const KeygenArguments& arguments) {
  const LoadOptions options = SizedOptions(arguments.size);
  if (arguments.config.dump) return DumpEffectiveConfig(arguments.config, options);
  Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
  if (NeedsLocal(arguments.size, config.cluster)) MakeLocal(arguments.size, &config);
  const KeyDirectory keys(std::filesystem::absolute(arguments.out).lexically_normal().string(),
                          config.cluster);
  for (const std::string& name : arguments.replace) Replace(keys, name);
  if (!arguments.replace.empty()) return 0;
  const size_t made = keys.AddMissing();
  fmt::print("{}: {}\n", keys.path(),
             made == 0 ? "every task has a key already" : fmt::format("added {} keys", made));
  PrintUse(keys, config.cluster);
  return 0;
}

}  // namespace dtrain
