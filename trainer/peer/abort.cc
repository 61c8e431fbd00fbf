#include "trainer/peer/abort.h"

namespace dtrain {
namespace {

std::string SummaryText(RunSummary summary) {
  Shorten(net::kMaxHeaderBytes - 64 * 1024, &summary);
  return ToWireJson(summary);
}

}  // namespace

flatbuffers::Offset<wire::Abort> CreateAbort(flatbuffers::FlatBufferBuilder& builder, int exit_code,
                                             TaskId task, const std::string& text,
                                             const RunSummary* summary) {
  const auto short_text = builder.CreateString(ShortText(text));
  const auto results = summary == nullptr ? 0 : builder.CreateString(SummaryText(*summary));
  return wire::CreateAbort(builder, exit_code, task.role == Role::kPs ? wire::Role::Ps : wire::Role::Worker,
                           static_cast<uint32_t>(task.index), short_text, results);
}

std::string AbortText(const ClusterConfig& cluster, const wire::Abort& abort) {
  const std::string text = ShortText(abort.text()->str());
  if (text.find(kEndedRun) != std::string::npos) return text;
  const TaskId task{abort.role() == wire::Role::Ps ? Role::kPs : Role::kWorker,
                    static_cast<int>(abort.index())};
  const size_t count = task.role == Role::kPs ? cluster.ps.size() : cluster.worker.size();
  const std::string name = abort.index() < count ? TaskNameAndAddress(cluster, task) : TaskName(task);
  return fmt::format("{}{}{}: {}", name, kEndedRun, abort.exit_code(), text);
}

ExitCode CauseOf(const wire::Abort& abort) {
  for (const ExitCode code : {ExitCode::kInternal, ExitCode::kUser, ExitCode::kDiverged}) {
    if (abort.summary() == nullptr && abort.exit_code() == static_cast<int>(code)) return code;
  }
  return ExitCode::kPeerLost;
}

ExitCode ExitCodeOf(const wire::Abort& abort) {
  if (abort.summary() == nullptr) return CauseOf(abort);
  const auto code = static_cast<ExitCode>(abort.exit_code());
  return code == ExitCode::kInterrupted || code == ExitCode::kTerminated ? code : ExitCode::kInternal;
}

void ThrowAbort(const ClusterConfig& cluster, const wire::Abort& abort) {
  if (abort.summary() == nullptr) throw RunEnded(CauseOf(abort), AbortText(cluster, abort));
  RunSummary summary;
  FromWireJson(abort.summary()->str(), &summary);
  summary.status = "stopped";
  throw RunStopped(ExitCodeOf(abort), ShortText(abort.text()->str()), std::move(summary));
}

}  // namespace dtrain
