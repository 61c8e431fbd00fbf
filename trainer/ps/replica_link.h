// ReplicaLink: a ps's side of its replica, which the next ps holds in its memory (failure.replicas; what is
// promised: docs/operations.md). It sends the holder a record of each change before the answer that contains
// the change leaves: the answers wait in the outbox. A new replica is filled unit by unit while updates go
// on. A ps that comes in the place of a lost one fills itself from the replica, which then goes on as its
// own. When the holder does not answer, nobody is answered until ps 0 has noted that the replica does not
// count (trainer/peer/replica_protocol.h). ps 0 adds the state of the leader, and its records count turn by
// turn of its loop: all of one, or none. Owner: PsServer. Thread: the ps loop. Messages: docs/wire.md,
// Replicas.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "net/codec.h"
#include "trainer/peer/conversation.h"
#include "trainer/peer/replica_protocol.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/replica_copy.h"
#include "trainer/ps/state_image.h"

namespace dtrain {

// What decides the bits of an update beside its inputs: the program and the kind of processor. (Which vector
// instructions it has does not: gpu/optimizer_ops_test.cc.)
std::string KernelsText();

class ReplicaLink {
 public:
  struct Parts {
    const PsTask& task;
    PsState state;
    Outbox& outbox;
  };
  explicit ReplicaLink(const Parts& parts);
  ~ReplicaLink() { Close(); }

  uint64_t incarnation() const { return incarnation_; }  // of this process
  // Its conversation with the holder; 0: none.
  net::NodeId node() const { return conversation_ ? conversation_->node() : 0; }
  // Takes a message of the holder.
  void OnMessage(net::Message& message);
  // Sends units, counts silence and repeats records. Call it with each turn of the loop.
  void Tick(TimePoint now);
  // There is a unit to send at once.
  bool busy() const {
    return units_ && next_item_ < units_->size() && unit_bytes_ < kUnitBytes && !conversation_full();
  }

  // ps 0 names an epoch: begins a replica of it, if it is new.
  void OnEpoch(uint64_t epoch);
  // This ps comes in the place of a lost one: fills itself from the replica of this epoch.
  void Fetch(uint64_t epoch);
  // It has not ended yet.
  bool fetching() const { return fetching_ && !fetched_; }
  bool fetched() const { return fetched_; }
  // What a ps 0 that has filled itself has of the leader's state.
  const StateImage& leader_state() const { return leader_state_; }
  // What ps 0 has to hear: when the phase changes, and now and then.
  struct Report {
    uint64_t epoch = 0;
    wire::ReplicaPhase phase = wire::ReplicaPhase::Broken;
    uint64_t behind = 0;
  };
  std::optional<Report> TakeReport(TimePoint now);

  // Records. Each is made before the answers that contain it; without a replica under way they do nothing.
  bool records() const { return recording_ && gate_.records(); }
  // A gradient is about to be applied: `payload` as it came; empty: `values`, which were in the header.
  void Push(const Member& member, uint64_t request, const wire::Push& push, net::Frame payload,
            net::TensorView values);
  // The rows that a message has asked for.
  void Keys(const Member& member, uint64_t request, int64_t block, uint32_t count, net::TensorView keys);
  // sync: a round was applied to a block, or answers with the weights that are there. Takes `sum`.
  void Round(int64_t block, uint64_t number, bool applies, RoundSum sum,
             const std::vector<const Member*>& exchanges);
  // What is known of a worker. `forgets`: its keys are forgotten too.
  void Worker(const Member& member, bool forgets = false);
  // On ps 0, at the end of a turn: a section of the leader's state as it is now. All are told if
  // lacks_state().
  void PutState(size_t section, std::string_view bytes) { leader_state_.Put(section, bytes, &changes_); }
  bool lacks_state() const { return leader_state_.empty(); }
  // The records of this turn count. Those of its answers that wait leave when the holder has all of them.
  void EndTurn();
  // ps 0 cannot answer before its replica is open again.
  bool stands_still() const { return gate_.answers_wait() && !recording_; }
  // ps 0: the run ends without the holder.
  void GiveUp();
  // Answers from now on wait for the last record before Recorded(), or for one more: those that rounds make
  // meanwhile are not the last.
  void ExpectRecord();
  void Recorded();

  // More records wait than memory allows: requests of workers must not be taken.
  bool full() const { return bytes_ - unit_bytes_ > kMaxBytes || conversation_full(); }
  // sync: the first round that the replica may not have, or one that is filled later.
  uint64_t oldest_round() const;

 private:
  static constexpr size_t kMaxBytes = size_t{64} << 20;
  static constexpr size_t kUnitBytes = size_t{8} << 20;  // on their way, behind which the next unit waits
  static constexpr size_t kMaxRecords = 1 << 14;
  static constexpr int64_t kOpenItems = 8;  // that a ps which fills itself has asked for

  struct Sent {
    uint64_t number = 0;
    size_t bytes = 0;
    uint64_t round = 0;
    bool is_unit = false;
  };

  bool conversation_full() const { return conversation_ && conversation_->open() > kMaxRecords / 2; }
  net::Envelope NextEnvelope();
  void Send(const net::Envelope& envelope, net::Message record, uint64_t round = 0, bool is_unit = false);
  void Open(bool fetches);
  void ReleaseAll();
  void WaitForLast();
  void Close();
  void BeginCopy();
  void SendUnits();
  void OnAck(uint64_t number, const wire::ReplicaAck& ack);
  void OnItem(const wire::Envelope& envelope, net::Message& message);
  void AskForItems(TimePoint now);
  void Break(const std::string& why);
  void Check(TimePoint now);

  Parts parts_;
  const Config& config_;
  Logger& log_;
  const bool in_turns_;  // of ps 0
  const uint64_t incarnation_ = net::NewNodeId();
  ReplicaGate gate_;
  StateImage leader_state_;
  std::string changes_;  // of it in this turn
  uint64_t turn_ = 0;    // the last record of the turn before
  std::unique_ptr<Conversation> conversation_;
  net::Encoder encoder_;
  std::deque<Sent> sent_;           // not acknowledged
  size_t bytes_ = 0;                // in them
  size_t unit_bytes_ = 0;           // in those that are units
  TimePoint again_;                 // when to send it again, which was not ready; unset: it was
  uint64_t last_ = 0;               // record sent
  TimePoint heard_;                 // when the holder acknowledged something, or nothing was open
  bool expects_ = false;            // a record follows those that are sent now
  bool recording_ = false;          // the holder has what records are about
  std::optional<CopyItems> units_;  // while the replica is filled
  int64_t next_item_ = 0;
  uint64_t last_unit_ = 0;  // the record of it
  // Of a ps that fills itself from its replica:
  bool fetching_ = false;
  bool fetched_ = false;
  std::optional<int64_t> items_;  // known with the answer to ReplicaOpen
  int64_t asked_ = 0;
  TimePoint ask_again_;
  uint64_t connections_ = 0;  // to the holder, when it was asked
  std::unique_ptr<RecordReader> reader_;
  TimePoint begun_;
  TimePoint broken_;
  TimePoint next_report_;
  bool tells_ = false;
  TimePoint next_check_;
  int64_t next_checked_ = 0;
};

}  // namespace dtrain
