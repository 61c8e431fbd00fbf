// CheckpointDesk: what a ps does for checkpoints: keeps its range for them, hands it to the chief's saver or
// writes it, and on ps 0 says when.
// Owner: PsServer. Thread: the ps loop. Messages: docs/wire.md, Checkpoints.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/log.h"
#include "net/codec.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/ps/coordinator.h"
#include "trainer/ps/cut_keeper.h"
#include "trainer/ps/joint_save.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/parameter_shard.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/save_desk.h"
#include "trainer/ps/shard_saver.h"
#include "trainer/ps/update_rule.h"
#include "trainer/ps/uplink.h"

namespace dtrain {

class CheckpointDesk {
 public:
  struct Parts {
    const Config& config;
    TaskId self;
    const Layout& layout;
    ParameterShard& shard;
    UpdateRule& rule;
    Membership& members;
    Outbox& outbox;
    RunHistory& history;
    Logger& log;
    Coordinator* coordinator;  // of ps 0; null elsewhere, and then there is an uplink
    Uplink* uplink;
  };
  // Throws UserError where ps 0 is to write, and cannot.
  explicit CheckpointDesk(const Parts& parts);

  // ps i > 0: from ps 0.
  void OnCut(const wire::Cut& cut);
  // ps 0: from another ps, and from a worker that asks for a checkpoint.
  void OnCutState(const Member& ps, const wire::CutState& state);
  void OnSave();
  // One of the questions of the chief's saver, who has a conversation of its own, without Hello. False: not
  // one of those.
  bool HandleSaver(net::NodeId from, const wire::Envelope& envelope);
  // A worker asks for the names of the checkpoints in the directory that the ps share.
  void OnListCheckpoints(const Member& member, uint64_t request);

  // To be called after every message.
  void AfterMessage() { keeper_.Tick(); }
  void Tick(TimePoint now);
  // Something is written here that is to be looked after soon.
  bool writing() const;

 private:
  void Coordinate();
  void OnKept();

  const Parts parts_;
  CutKeeper keeper_;
  std::unique_ptr<CheckpointDirectory> shared_;  // ps 0, with checkpoint.writer: ps, as the next two
  std::unique_ptr<JointSave> joint_;             // ps 0
  std::unique_ptr<ShardSaver> shard_saver_;      // the others
  std::unique_ptr<SaveDesk> saves_;              // ps 0, with checkpoint.dir
};

}  // namespace dtrain
