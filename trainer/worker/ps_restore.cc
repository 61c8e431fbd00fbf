#include "trainer/worker/ps_restore.h"

#include "base/error.h"
#include "trainer/checkpoint/bad_checkpoint.h"
#include "trainer/peer/form_message.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/short_text.h"

namespace dtrain {

std::optional<Restored> PsRestore::Newest() {
  const wire::Checkpoints* listed =
      client_
          .Call(0, false, "the list of checkpoints",
                [](auto& builder) { return wire::CreateListCheckpoints(builder); })
          .body_as_Checkpoints();
  if (listed == nullptr)
    throw Failure(ExitCode::kInternal, "ps 0 answered ListCheckpoints with something else");
  std::vector<std::string> names, skipped;
  if (listed->names() != nullptr) {
    for (const flatbuffers::String* name : *listed->names()) names.push_back(name->str());
  }
  if (listed->unreadable() != nullptr) {
    for (const flatbuffers::String* line : *listed->unreadable()) skipped.push_back(line->str());
  }
  const std::string& dir = config_.checkpoint.dir;
  for (const std::string& line : skipped) log_.Warning("{}: {}; skipped", dir, line);
  for (const std::string& name : names) {
    Restored restored;
    const std::string error = Load(name, &restored);
    restored.path = dir.empty() ? name : dir + "/" + name;
    if (error.empty()) return restored;
    log_.Warning("{}: {}: {}; skipped", dir, name, error);
  }
  if (!names.empty() || !skipped.empty()) throw NoneComplete(dir);
  return std::nullopt;
}

Restored PsRestore::Named(const std::string& path) {
  Restored restored;
  const std::string error = Load(path, &restored);
  if (!error.empty()) throw BadCheckpoint(path, error);
  restored.path = path;
  return restored;
}

std::string PsRestore::Load(const std::string& name, Restored* restored) {
  std::string error, misfit;
  std::vector<Restored> by_ps(client_.ps_count());
  const auto ask = [&](auto& builder) { return wire::CreateLoad(builder, builder.CreateString(name)); };
  client_.CallAll("load", ask, [&](size_t ps, const wire::Envelope& answer) {
    const TaskId task{Role::kPs, static_cast<int>(ps)};
    const wire::Loaded* loaded = answer.body_as_Loaded();
    if (loaded == nullptr) {
      throw Failure(ExitCode::kInternal, TaskName(task) + " answered Load with something else");
    }
    if (loaded->error() != nullptr) {
      error = fmt::format("{} (found by {})", ShortText(loaded->error()->str()), TaskName(task));
      if (loaded->misfit()) misfit = ShortText(loaded->error()->str());
      return;
    }
    by_ps[ps].step = static_cast<int64_t>(loaded->step() & kMostSteps);
    if (loaded->positions() != nullptr) by_ps[ps].positions = loaded->positions()->str();
    if (loaded->inputs() != nullptr) by_ps[ps].inputs = DecodeForm(*loaded->inputs());
  });
  if (!misfit.empty()) throw UserError("{}", misfit);
  *restored = by_ps[0];
  for (size_t ps = 1; ps < by_ps.size() && error.empty(); ++ps) {
    const bool same = by_ps[ps].step == restored->step && by_ps[ps].positions == restored->positions;
    if (!same) error = fmt::format("ps {} has another checkpoint of that name than ps 0", ps);
  }
  return error;
}

}  // namespace dtrain
