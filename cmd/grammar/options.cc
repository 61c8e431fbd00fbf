#include "cmd/grammar/options.h"

#include <charconv>

#include "base/error.h"

namespace dtrain {

void AddConfigOptions(CLI::App* app, ConfigArguments* config) {
  app->add_option("--config", config->path, "The YAML file that describes model, data and cluster")
      ->type_name("FILE");
  // One at a time: the help of an option with a list would promise several behind one flag.
  app->add_option_function<std::string>(
         "--set", [config](const std::string& set) { config->sets.push_back(set); },
         "Beats the file's value; repeatable. VALUE is YAML")
      ->type_name("KEY=VALUE")
      ->trigger_on_parse();
  app->add_flag("--dump-config", config->dump, "Print the effective YAML and end");
}

void AddResultOption(CLI::App* app, std::string* path, const char* what) {
  app->add_option("--result", *path, what)->type_name("FILE");
}

void AddWorkersOption(CLI::App* app, std::string* text) {
  app->add_option("--workers", *text, "How many workers; as the file says, else 2")->type_name("N");
}

void AddSizeOptions(CLI::App* app, SizeTexts* texts) {
  app->add_option("--ps", texts->ps, "How many ps; as the file says, else 1")->type_name("N");
  AddWorkersOption(app, &texts->workers);
}

ClusterSize UnderstandSize(const SizeTexts& texts) {
  ClusterSize size;
  if (!texts.ps.empty()) size.ps = ParseNumber("--ps", texts.ps, 1, "1");
  if (!texts.workers.empty()) size.workers = ParseNumber("--workers", texts.workers, 1, "2");
  return size;
}

void AddCheckpointArgument(CLI::App* app, std::string* path) {
  app->add_option("path", *path, "A checkpoint, or a directory of checkpoints")->type_name("");
}

void RequireConfig(const ConfigArguments& config) {
  if (!config.path.empty()) return;
  throw UserError("--config is missing: no YAML file to read. Try --config configs/quickstart_digits.yaml.");
}

const std::string& RequireCheckpoint(const char* command, const std::string& path) {
  if (!path.empty()) return path;
  throw UserError("{0}: which checkpoint? Name one, or a directory of them: dtrain {0} run/ckpt.", command);
}

int ParseNumber(const std::string& option, const std::string& text, int least, const char* example) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value < least) {
    throw UserError("{} {}: must be a whole number >= {}. Try {} {}.", option, text, least, option, example);
  }
  return value;
}

}  // namespace dtrain
