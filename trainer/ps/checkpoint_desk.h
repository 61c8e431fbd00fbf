// CheckpointDesk: what a ps does for checkpoints: keeps its range for them, writes it where it sees the
// directory or hands it to ps 0 in pieces, and on ps 0 says when.
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
  void OnReadPiece(net::NodeId from, const wire::ReadPiece& question) { keeper_.OnReadPiece(from, question); }
  // ps 0: from another ps, and from a worker that asks for a checkpoint.
  void OnCutState(const Member& ps, const wire::CutState& state);
  void OnPiece(const Member& ps, net::Message message);
  void OnSave();
  // ps 0: null without checkpoint.dir.
  const CheckpointDirectory* directory() const { return directory_.get(); }

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
  std::unique_ptr<ShardSaver> shard_saver_;         // a ps i > 0
  std::unique_ptr<CheckpointDirectory> directory_;  // ps 0, with checkpoint.dir, as the next two
  std::unique_ptr<JointSave> joint_;
  std::unique_ptr<SaveDesk> saves_;
};

}  // namespace dtrain
