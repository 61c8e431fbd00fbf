// ModelStart: the chief's first duty in a run: every ps gets initial values, or those of a checkpoint, which
// checkpoint.resume decides.
// Owner and thread: the worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/log.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/config.h"
#include "trainer/data/positions.h"
#include "trainer/data/source.h"
#include "trainer/model/layout.h"
#include "trainer/worker/ps_client.h"
#include "trainer/worker/ps_restore.h"

namespace dtrain {

struct StartedFrom {
  std::string path;  // of the checkpoint; empty: initial values
  int64_t step = 0;  // of the checkpoint
  Positions positions;
  FittedScale scale;  // of the data that it was trained with; empty: not scaled, or not known
};

class ModelStart {
 public:
  // `directory`: null without checkpoint.dir, and with checkpoint.writer: ps.
  ModelStart(const Config& config, const Layout& layout, PsClient& client,
             const CheckpointDirectory* directory, Logger& log)
      : config_(config), layout_(layout), client_(client), directory_(directory), log_(log) {}

  // `again`: the run had begun and goes on from its newest checkpoint, whatever checkpoint.resume says.
  // `data`: the worker's own. UserError where the checkpoint is damaged or of another model.
  StartedFrom Fill(bool again, const LoadedData& data);

 private:
  // Every ps then has its values; unset: there is none to restore.
  [[noreturn]] void NothingToGoBackTo() const;
  std::optional<Restored> LoadByPs(bool again, const InputForm& form);
  std::optional<Restored> AskPs(bool again);
  std::optional<Restored> SendOwn(bool again, const InputForm& form);
  std::optional<std::string> Choose(bool again);
  std::optional<std::string> Newest();
  void Send(CheckpointReader& checkpoint);
  void SendShard(CheckpointReader& checkpoint, size_t ps);

  const Config& config_;
  const Layout& layout_;
  PsClient& client_;
  const CheckpointDirectory* const directory_;
  Logger& log_;
};

}  // namespace dtrain
