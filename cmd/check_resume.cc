#include "cmd/check_resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/names.h"
#include "trainer/checkpoint/bad_checkpoint.h"
#include "trainer/checkpoint/check_meaning.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/address_rule.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {
namespace {

bool ReadByPs(const Config& config) { return config.checkpoint.writer == CheckpointWriter::kPs; }

// Whether the tasks that read it are all on this machine.
bool IsReadHere(const Config& config) {
  const std::vector<std::string>& all = ReadByPs(config) ? config.cluster.ps : config.cluster.worker;
  const std::set<std::string> own = OwnNames();
  const auto is_here = [&](const std::string& address) {
    return IsLoopbackHost(HostOf(address)) || own.count(HostOf(address)) > 0;
  };
  return std::all_of(all.begin(), ReadByPs(config) || all.empty() ? all.end() : all.begin() + 1, is_here);
}

// As the run chooses it; nothing where it begins anew. Says which are damaged.
std::optional<std::string> Choose(const CheckpointConfig& checkpoint, const ErrorLines& errors) {
  if (checkpoint.resume != "auto") return checkpoint.resume;
  std::vector<std::string> skipped;
  const std::optional<std::string> newest = CheckpointDirectory(checkpoint.dir).FindNewest(&skipped);
  for (const std::string& line : skipped) {
    errors.Print(fmt::format("warning: {}: {}", checkpoint.dir, line));
  }
  if (!newest && !skipped.empty()) throw NoneComplete(checkpoint.dir);
  return newest;
}

std::string StartLine(const Config& config, const Layout& layout, const InputForm& form,
                      const ErrorLines& errors) {
  const std::optional<std::string> path = Choose(config.checkpoint, errors);
  if (!path) return fmt::format("start: anew, since {} has no checkpoint", config.checkpoint.dir);
  CheckpointReader checkpoint(*path);
  if (config.checkpoint.resume != "auto") checkpoint.Verify();  // FindNewest() does it
  checkpoint.CheckFits(layout, SlotNames(config));
  CheckMeaning(*path, checkpoint.manifest(), config, form);
  const std::optional<InputForm>& saved = checkpoint.manifest().inputs;
  const bool other_scale = saved && !saved->scale.shift.empty() && saved->scale != form.scale;
  return fmt::format("start: from {}, at global step {}{}", *path, checkpoint.manifest().step,
                     other_scale ? ", with its data.scale: that of these rows is another one" : "");
}

}  // namespace

std::string CheckResume(const Config& config, const Layout& layout, const InputForm& form,
                        const ErrorLines& errors) {
  const CheckpointConfig& checkpoint = config.checkpoint;
  if (checkpoint.resume == "never" || (checkpoint.resume == "auto" && checkpoint.dir.empty())) return "";
  const bool here = IsReadHere(config);
  try {
    const std::string line = StartLine(config, layout, form, errors);
    return here ? line : "";
  } catch (const UserError& error) {
    if (here) throw;
    const char* key = checkpoint.resume == "auto" ? "checkpoint.dir" : "checkpoint.resume";
    errors.Print(fmt::format("warning: {}, as this machine sees it: {} {} it where it runs.", key,
                             error.what(), ReadByPs(config) ? "Every ps reads" : "Worker 0 reads"));
    return "";
  }
}

}  // namespace dtrain
