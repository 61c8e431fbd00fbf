// RunData: what the workers say of their data: the facts of the lowest worker, by which the run goes, and a
// fingerprint of each one's rows. A run in which a worker comes back with other rows is not deterministic.
// Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <optional>

#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/choices.h"
#include "trainer/leader/restore.h"
#include "trainer/peer/form_message.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"

namespace dtrain {

class RunData {
 public:
  RunData(const Config& config, TaskTable& members, RunHistory& history, Logger& log);

  // Takes what a worker says with Ready. Before the first step it may come again with rows that were put
  // right; after it, warns of other rows than before.
  void Learn(Member& worker, const wire::DataFacts& said);
  // The run starts. If this process of ps 0 does not know the rows of before, warns of other rows than those
  // that the weights were trained on.
  void Start(const StartedFrom& from);
  template <typename Archive>
  void State(Archive& archive) {
    archive(facts_, from_);
  }
  // The facts of the lowest worker; unset: none has said any.
  const std::optional<DataFacts>& facts() const { return facts_; }

 private:
  void Compare(const Member& worker, const DataFingerprint& before);

  TaskTable& members_;
  RunHistory& history_;
  Logger& log_;
  std::optional<DataFacts> facts_;
  int from_ = 0;  // the index of the worker that said them
};

}  // namespace dtrain
