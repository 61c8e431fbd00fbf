// RemoteLeader: the leader of a ps i > 0, over a conversation with ps 0. It joins the run, carries out the
// orders of ps 0 for this ps's range, asks for the rounds and the end of the run, and watches ps 0.
// Owner: PsServer. Thread: the ps loop; heartbeats have their own. Messages: docs/wire.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "net/channel.h"
#include "net/codec.h"
#include "trainer/peer/conversations.h"
#include "trainer/ps/leader.h"
#include "trainer/shard/shared_directory.h"

namespace dtrain {

class RemoteLeader : public Leader {
 public:
  explicit RemoteLeader(const LeaderParts& parts);

  RunId run() const override { return peers_.run(); }
  net::NodeId node() const override { return peers_[0].node(); }

  // Only logs it: ps 0 misses the worker too, and decides.
  void OnOverdue(Member& member, const std::string& why) override;
  bool OnAbort(Member& member, const wire::Abort& abort, bool waits) override;
  bool OnRequest(Member& member, const wire::Envelope& request, bool repeated) override;
  void OnMessage(const wire::Envelope& envelope, net::Message& message) override;

  uint64_t LeaderIncarnation() const override { return peers_.leader_incarnation(); }
  std::string WhyLeads(bool sought) const override { return peers_.why_leads(sought); }
  void LoseLeader(const std::string& how) override { peers_.LoseLeader(how); }
  void MoveLeaderHere(std::function<void(net::Message)> take) override {
    peers_.MoveLeaderHere(std::move(take));
  }
  bool fills() const override;
  void OnReplicaDiffers(const std::string& why) override;
  void OnFilled(const FillOutcome& outcome) override;
  void OnSnapshot(int ps, uint64_t number, const ShardSaver::Outcome* part) override;
  std::optional<double> OnNorm(uint64_t round, const gpu::SquareSum& squares) override;
  void AskForPiece(uint64_t number, Piece piece) override;
  bool SeesDirectory() const override { return shared_.seen(); }

  void Tick(TimePoint now) override;
  bool busy() const override { return reporting_; }
  bool Finished(TimePoint) const override { return end_.has_value(); }
  RunSummary Summary() const override;
  void Leave(const std::string& why) override;
  void Abort(int exit_code, const std::string& text, const RunSummary* summary) override;

 private:
  Conversation& leader() { return peers_[0]; }
  void SayReadyWhenFilledAndDirectoryIsKnown();
  void TellOfReplica(TimePoint now);
  void AskForEnd();
  void TakeAnswer(const wire::Envelope& envelope);
  void CarryOut(const wire::Order& order);
  void TakeNoMore(const wire::Incarnation& gone);
  void TakeRound(const wire::Round& round);
  void TakeRoundOfReplica(const wire::Round& round);
  RoundDecision DecisionIn(const wire::Round& round) const;
  void SendReport();

  const LeaderParts parts_;
  Conversations peers_;  // ps 0 alone
  SharedDirectory shared_;
  bool ready_ = false;   // Ready is sent
  bool asking_ = false;  // a WaitEnd is open
  // sync: the round to ask for. With clip_norm also this ps's part of the norm of the round before:
  // `owes_norm_` until it is measured, then in `squares_` until the scale is here.
  uint64_t next_round_ = 0;
  bool owes_norm_ = false;
  std::optional<gpu::SquareSum> squares_;
  std::optional<ShardReport> report_;  // on the final weights
  bool reporting_ = false;             // ps 0 has asked for it, and it is not ready
  std::optional<std::string> end_;     // the run's summary from ps 0
};

}  // namespace dtrain
