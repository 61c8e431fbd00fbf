#include "cmd/check_resume.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/host_name.h"
#include "trainer/checkpoint/bad_checkpoint.h"
#include "trainer/checkpoint/check_meaning.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/address_rule.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {
namespace {

// Whether ps 0, which chooses it, is on this machine.
bool IsReadHere(const Config& config) {
  if (config.cluster.ps.empty()) return true;
  const std::string host = HostOf(config.cluster.ps.front());
  return IsLoopbackHost(host) || OwnNames().count(host) > 0;
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
    errors.Print(fmt::format("warning: {}, as this machine sees it: {} ps 0 reads it where it runs.", key,
                             error.what()));
    return "";
  }
}

}  // namespace dtrain
