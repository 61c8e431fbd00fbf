#include "trainer/leader/run_data.h"

#include <string>
#include <utility>

#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/order/data_fingerprint.h"

namespace dtrain {
namespace {

DataFingerprint FingerprintOf(const DataFacts& facts) {
  return facts.read ? DataFingerprint{facts.rows.value_or(0), facts.labels, facts.features}
                    : DataFingerprint();
}

}  // namespace

RunData::RunData(const Config& config, TaskTable& members, RunHistory& history, Logger& log)
    : members_(members), history_(history), log_(log) {
  history_.data_of.resize(config.cluster.worker.size());
}

void RunData::Learn(Member& worker, const wire::DataFacts& said) {
  worker.evaluates = said.has_test() || said.has_validation();
  const DataFacts facts = DecodeFacts(said);
  DataFingerprint& known = history_.data_of[static_cast<size_t>(worker.task.index)];
  const DataFingerprint before = std::exchange(known, FingerprintOf(facts));
  if (history_.begun) Compare(worker, before.rows > 0 ? before : history_.data);
  if (facts_ && from_ < worker.task.index) return;
  facts_ = facts;
  from_ = worker.task.index;
  if (said.inputs() == nullptr || facts_->form) return;
  log_.Warning("names and scale of the data are not known here: what {} says of them is not valid",
               TaskName(worker.task));
}

void RunData::Start(const StartedFrom& from) {
  if (facts_ && facts_->read) history_.data = FingerprintOf(*facts_);
  history_.disturbed |= from.positions.disturbed || !from.other_data.empty();
  if (history_.first_step >= 0 || !from.other_data.empty() || from.trained_on.empty()) return;
  for (const Member& member : members_.all()) {
    if (!member.is_worker()) continue;
    const auto worker = static_cast<size_t>(member.task.index);
    if (member.is_ready()) Compare(member, from.trained_on[worker]);
    if (history_.data_of[worker].rows == 0) history_.data_of[worker] = from.trained_on[worker];
  }
}

void RunData::Compare(const Member& worker, const DataFingerprint& before) {
  const std::string difference =
      DataDifference(history_.data_of[static_cast<size_t>(worker.task.index)], before);
  if (difference.empty()) return;
  history_.disturbed = true;
  log_.Warning(
      "{} came with other rows of data.train: {}. The run goes on with them and is not deterministic. If "
      "that "
      "matters, put the old rows back and start the run again from an earlier checkpoint.",
      members_.NameOf(worker), difference);
}

}  // namespace dtrain
