// Uplink: the side of a ps i > 0 that talks to ps 0: joins the run, waits for its end, and hears of failure.
// Owner: PsServer. Thread: the ps loop, except for its heartbeats.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/peer/conversations.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/range_filler.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/shard_report.h"
#include "trainer/ps/shard_saver.h"
#include "trainer/ps/shared_directory.h"
#include "trainer/ps/update_rule.h"

namespace dtrain {

class Uplink {
 public:
  // `rule` is told the rounds that ps 0 decides (sync); it outlives this.
  Uplink(const PsTask& task, const Activity& activity, UpdateRule& rule, RunHistory& history);

  net::NodeId node() const { return peers_[0].node(); }
  // Not known until ps 0 has let this task in.
  RunId run() const { return peers_.run(); }
  // The conversation ends; another Uplink will begin one of its own.
  void Leave() { channel_.Disconnect(node()); }

  // A message from ps 0. Throws PeerLost when it ends the run as failed, UserError when it refuses us,
  // RolledBack when it does not know this task any more and the run goes on from a checkpoint.
  void Handle(const wire::Envelope& message);
  // Says Hello until heard, repeats requests, watches ps 0 and the start-up deadline. Throws PeerLost.
  void Tick(TimePoint now);
  // Tells ps 0 that this task failed.
  void Abort(int exit_code, const std::string& text) { peers_.Abort(exit_code, text); }
  // Asks ps 0 for the end and, in sync, for what the rule needs next; unless that is asked already, or the
  // rule has yet to make what goes with the question.
  void AskForEnd();

  // Notices to ps 0, which asks again for what is lost. `shard`: what became of this ps's part; null: not
  // known yet, or not its to write.
  void SendCutState(uint64_t number, const ShardSaver::Outcome* shard);
  void SendFilled(const FillOutcome& outcome);
  // Asks ps 0 for a piece of the checkpoint that is restored.
  void AskForPiece(uint64_t number, int64_t piece);
  // This ps reads and writes in the checkpoint.dir of ps 0 itself.
  bool sees_directory() const { return shared_.seen(); }

  // What this ps holds at the end of the run, as ps 0 has asked for it.
  void SendReport(const ShardReport& report);

  // The run's summary as ps 0 sent it, once the run is over.
  const std::optional<std::string>& end() const { return end_; }

 private:
  Conversation& leader() { return peers_[0]; }
  void AskWhenDirectoryIsKnown();

  net::Channel& channel_;
  UpdateRule& rule_;
  RunHistory& history_;
  Conversations peers_;  // with ps 0 alone
  SharedDirectory shared_;
  bool asked_ = false;   // Ready is said
  bool asking_ = false;  // a WaitEnd is open
  std::optional<std::string> end_;
};

}  // namespace dtrain
