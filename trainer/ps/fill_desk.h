// FillDesk: how the range of a ps gets the values that a run begins with: made here, sent by the chief from
// its checkpoint, or read here (checkpoint.writer: ps). Only a worker that was told to initialise is heard.
// Owner: PsServer. Thread: the ps loop. Messages: docs/wire.md, Initialise, Restore, Load.
#pragma once

#include <cstdint>
#include <optional>

#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/ps/coordinator.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/parameter_shard.h"
#include "trainer/ps/range_loader.h"

namespace dtrain {

class FillDesk {
 public:
  // `coordinator`: of ps 0, else null. All outlive this.
  FillDesk(const Config& config, const Layout& layout, int ps, ParameterShard& shard,
           const Coordinator* coordinator, Outbox& outbox);

  // Of one that may not ask: not answered, or refused. Answered when all is made, as OnLoad().
  void OnInitialise(const Member& member, uint64_t request, const wire::Initialise& initialise);
  void OnRestore(const Member& member, uint64_t request, const wire::Restore& restore,
                 net::TensorView values);
  // Answered when it has ended. One that comes again meanwhile is not answered for itself. False: nothing is
  // loaded for it here.
  bool OnLoad(const Member& member, uint64_t request, const wire::Load& load);

  // Makes values, or loads them, for some milliseconds, where there is something to do.
  void Turn();
  bool busy() const { return making_ || (loader_ && loader_->busy()); }

 private:
  bool MayAsk(const Member& member) const;
  void AnswerLoad();

  ParameterShard& shard_;
  const Coordinator* const coordinator_;
  Outbox& outbox_;
  std::optional<RangeLoader::Question> making_;  // initial values, for whom
  std::optional<RangeLoader> loader_;            // with checkpoint.writer: ps
};

}  // namespace dtrain
