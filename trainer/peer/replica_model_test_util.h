// The model that replica_protocol_test.cc searches: ps 1 and its processes, its holder, ps 0, a worker with 3
// requests, and the connections between them. The rules are those of replica_protocol.h; around them is what
// each task keeps and sends. ps 0 is never lost here: its loss takes the run back in any case. Where the
// holder is not lost either, it may be ps 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "trainer/peer/replica_protocol.h"

namespace dtrain::replica_model {

using wire::ReplicaPhase;
using Take = ReplicaSession::Take;

constexpr int kRequests = 3;
constexpr int kBlocks = 2;     // a request is one block of a gradient; a unit is a block
constexpr int kProcesses = 3;  // of ps 1, one after the other

// kReal, or the rule that is broken.
enum class Rules {
  kReal,
  kNoEpochs,          // ps 1 is filled from any complete replica
  kOldOrder,          // ps 1 carries out an order of an epoch that it has already
  kLeavesWhenBroken,  // answers leave when the replica breaks, before ps 0 has noted it
  kLateAck,           // answers leave with an acknowledgement that comes when the replica is broken
  kWaitsLate,         // answers wait from the acknowledgement of the last unit on
  kFilledEarly,       // ps 1 tells that its replica is filled when it begins it
  kAnyConversation,   // the holder takes records of a process that was replaced
  kNumbersAnew,       // each epoch numbers its records from 1, in the same conversation
  kOpensTwice,   // a replica is opened again at another process of the holder, and filled before it is open
  kBeginsEmpty,  // ps 0 names the next epoch to a ps that could not be filled
  kTellsOnce,    // ps 0 does not tell the epoch again to a ps that knows it
};

enum class Kind : uint8_t { kNone, kOpen, kFetch, kPush, kUnit, kRead, kAck, kItem, kRefuse, kNotice };
struct Message {
  Kind kind;
  uint8_t number, a, b;
};

template <int kSize>
struct Queue {
  Message at[kSize];
  uint8_t size;

  bool empty() const { return size == 0; }
  bool full() const { return size == kSize; }
  Message& last() { return at[size - 1]; }
  void Put(Message message) { at[size++] = message; }
  // A message that there is no room for is lost.
  void Tell(Message message) {
    if (!full()) Put(message);
  }
  bool Lose() { return !empty() && TakeFirst().kind != Kind::kNone; }
  Message TakeFirst() {
    const Message first = at[0];
    std::memmove(at, at + 1, sizeof(at) - sizeof(at[0]));
    at[--size] = {};
    return first;
  }
};
// A connection: messages arrive in order. If it breaks, those on their way are lost.
struct Link {
  Queue<2> to, from;
  bool empty() const { return to.empty() && from.empty(); }
};

// What ps 1 has, and its replica: the requests that each block contains, and the latest request taken.
struct Content {
  uint8_t block[kBlocks];
  uint8_t last;
  bool Has(int request) const { return block[request % kBlocks] >> request & 1; }
};

enum class Life : uint8_t { kNotStarted, kFetches, kFetched, kServes, kDead };

// A process of ps 1.
struct Process {
  ReplicaGate gate;
  uint8_t index;
  Life life;
  Content content;
  uint8_t made, sent, acknowledged;  // the latest record made, sent over this connection, acknowledged
  uint8_t units, last_unit;          // how many are recorded, until it is filled; the record of the last one
  uint8_t fetch_epoch, items;        // the epoch that it fills itself from; how many items it has
  uint8_t answers[kRequests];        // 1 + the latest record before the answer, which waits; 0: none
  uint8_t at;                        // the process of the holder that it is connected to
  Queue<6> kept;                     // the records that are not acknowledged
  Link holder, leader;

  uint64_t node() const { return index + uint64_t{1}; }
  bool lives() const { return life != Life::kNotStarted && life != Life::kDead; }
  bool fetches() const { return life == Life::kFetches; }
  // The holder has not acknowledged that the replica is open.
  bool opening() const { return !kept.empty() && kept.at[0].kind == Kind::kOpen; }
  bool serves() const { return life == Life::kServes; }
};

// A process of the holder.
struct Holder {
  ReplicaSession session;
  Content replica;
  uint8_t units;  // those that are here, as bits
  bool lives;
};

struct Faults {
  uint8_t ps_losses, holder_losses, link_faults, holder_returns;
};

struct State {
  Process ps[kProcesses];
  Holder holders[2];
  uint8_t holder;  // the latest
  // ps 0: which process is ps 1, whether that is not filled yet, whether the holder is here.
  ReplicaNote note;
  uint8_t ps1;
  bool recovers, holder_here, went_back;
  // The worker: the latest request answered, the latest sent over this connection, the process at its other
  // end. An answer arrives at once, or is lost.
  uint8_t answered, sent, peer;
  bool loses_answer;
  Queue<2> requests;
  Faults left;  // the faults that may still come

  bool ended() const {
    const bool counts = note.counts() && note.epoch() == ps[ps1].gate.epoch();
    return went_back || (answered == kRequests && ps[ps1].serves() && (counts || !holder_here));
  }
};
static_assert(std::is_trivially_copyable_v<State>);

// The tasks, and the steps that each of them does: a process of ps 1; or another task, with the process that
// is ps 1 now as argument. A step returns false if it cannot be done now.
class Model {
 public:
  Model(Rules rules, Faults faults) : rules_(rules) {
    std::memset(static_cast<void*>(&first), 0, sizeof(first));  // what lies between its fields too
    new (&first) State;
    for (uint8_t i = 0; i < kProcesses; ++i) first.ps[i].index = i;
    first.ps[0].life = Life::kServes;
    first.holders[0].lives = first.holder_here = true;
    first.left = faults;
  }
  State first;
  State s;
  // What must not be, or must not have happened; null: all is right.
  const char* Judge() const;
  // Makes one state of many from which the same follows.
  void Simplify();

  // ps 1.

  bool TakeRequest(Process& ps) {
    if (ps.index != s.peer || s.requests.empty() || !ps.serves()) return false;
    const uint8_t request = s.requests.TakeFirst().number;
    if (request == ps.content.last + 1) {
      Apply(request, &ps.content);
      ps.content.last = request;
      if (ps.gate.records()) Record(ps, {Kind::kPush, 0, request, 0});
    }
    if (request <= ps.content.last) ps.answers[request - 1] = ps.made + 1;
    return Send(ps);
  }
  // Only when the replica is open: answers are not to wait for a holder that is away.
  bool RecordUnit(Process& ps) {
    if (!ps.serves() || ps.gate.phase() != ReplicaPhase::Filling || ps.units == kBlocks) return false;
    if (ps.opening() && rules_ != Rules::kOpensTwice) return false;
    Record(ps, {Kind::kUnit, 0, ps.units, ps.content.block[ps.units]});
    if (++ps.units == kBlocks) {
      ps.last_unit = ps.made;
      if (rules_ != Rules::kWaitsLate) ps.gate.BeginWait();
    }
    return Send(ps);
  }
  bool HearHolder(Process& ps) {
    if (!ps.lives() || ps.holder.from.empty()) return false;
    const Message m = ps.holder.from.TakeFirst();
    if (m.kind == Kind::kAck) OnAck(ps, m.number);
    if (m.kind == Kind::kItem && ps.fetches() && m.a == ps.items) {
      ps.content.block[m.a] = m.b;
      ps.content.last = m.number;
      if (++ps.items == kBlocks) {
        ps.life = Life::kFetched;
        ps.gate.GoOn(ps.fetch_epoch);
      }
    }
    if (m.kind == Kind::kRefuse && (ps.fetches() || m.a == ps.gate.epoch())) Break(ps);
    if (m.kind != Kind::kRefuse && ps.fetches()) ps.holder.to.Tell({Kind::kRead, 0, ps.items, 0});
    return Send(ps);
  }
  bool HearLeader(Process& ps) {
    if (!ps.lives() || ps.leader.from.empty()) return false;
    const uint8_t epoch = ps.leader.from.TakeFirst().a;
    if (rules_ == Rules::kOldOrder && epoch == ps.gate.epoch()) ps.gate = first.ps[0].gate;
    if (rules_ == Rules::kBeginsEmpty) ps.life = Life::kServes;
    if (ps.gate.OnEpoch(epoch)) {
      // Numbers go on; with which one does not matter.
      ps.made = ps.acknowledged = rules_ == Rules::kNumbersAnew ? 0 : 8 * epoch;
      ps.units = 0;
      DropRecords(ps);
      Record(ps, {Kind::kOpen, 0, epoch, ps.content.last});
    }
    Report(ps);
    return Send(ps);
  }
  bool Repeat(Process& ps) {
    if (ps.life == Life::kNotStarted || ps.holder.to.full() || !s.holders[ps.at].lives) return false;
    if (ps.fetches()) {  // from the first item on
      ps.items = 0;
      ps.holder.to.Put({Kind::kFetch, 1, ps.fetch_epoch, 0});
      return true;
    }
    return ps.serves() && !ps.kept.empty() && SendAgain(ps);
  }
  bool RepeatLost(Process& ps) { return ps.holder.empty() && Repeat(ps); }
  bool RepeatBroken(Process& ps) {
    const bool broken =
        ps.serves() && ps.gate.phase() == ReplicaPhase::Broken && ps.gate.epoch() == s.note.epoch();
    return broken && ps.index == s.ps1 && ps.leader.empty() && Report(ps);
  }
  // ps 0 takes no report of a process that it has replaced, and nothing follows from Filling.
  bool Report(Process& ps) {
    const bool fills = ps.gate.phase() == ReplicaPhase::Filling;
    if (ps.index != s.ps1 || (fills && rules_ != Rules::kFilledEarly)) return false;
    const auto phase = static_cast<uint8_t>(fills ? ReplicaPhase::Filled : ps.gate.phase());
    ps.leader.to.Tell({Kind::kNotice, 0, ps.fetches() ? ps.fetch_epoch : uint8_t(ps.gate.epoch()), phase});
    return true;
  }
  bool RepeatReport(Process& ps) { return ps.serves() && ps.gate.epoch() > 0 && Report(ps); }
  bool GiveUp(Process& ps) {
    if (!ps.serves() || !ps.gate.records()) return false;
    Break(ps);
    return Send(ps);
  }
  // The holder does not know this replica.
  bool GiveUpStranger(Process& ps) {
    const Holder& holder = s.holders[ps.at];
    if (!holder.lives || !ps.holder.empty() || ps.kept.empty() || ps.opening()) return false;
    return (holder.session.node() != ps.node() || holder.session.epoch() != ps.gate.epoch()) && GiveUp(ps);
  }
  // If the replica may be open already, that is its end: another process may have the same epoch.
  bool ConnectTo(Process& ps, uint8_t holder) {
    if (ps.life == Life::kNotStarted || !s.holders[holder].lives) return false;
    const bool may_be_open = ps.opening() && ps.sent >= ps.kept.at[0].number;
    ps.holder = {};
    ps.at = holder;
    if (ps.lives() && may_be_open && rules_ != Rules::kOpensTwice) Break(ps);
    return !ps.lives() || SendAgain(ps);
  }
  bool ConnectToHolder(Process& ps) { return ConnectTo(ps, s.holder); }
  bool ConnectToOldHolder(Process& ps) { return s.holder == 1 && ConnectTo(ps, 0); }
  bool LeaveOldHolder(Process& ps) { return ps.at < s.holder && ConnectTo(ps, 1); }
  // What it has sent still arrives.
  bool Kill(Process& ps) { return ps.lives() && MakeDead(ps, ps.holder.to, ps.leader.to); }

  // The holder.

  bool TakeRecord(Process& ps) {
    Holder& holder = s.holders[ps.at];
    if (!holder.lives || ps.holder.to.empty() || ps.holder.from.full()) return false;
    const Message answer = AnswerTo(ps.holder.to.TakeFirst(), ps.node(), &holder);
    if (!ps.lives() || answer.kind == Kind::kNone) return true;
    // An acknowledgement takes the place of one that is on its way.
    Queue<2>& from = ps.holder.from;
    const bool again = answer.kind == Kind::kAck && !from.empty() && from.last().kind == Kind::kAck;
    again ? void(from.last() = answer) : from.Put(answer);
    return true;
  }
  bool KillHolder(Process&) {
    if (!s.holders[s.holder].lives) return false;
    s.holders[s.holder] = first.holders[1];
    for (Process& ps : s.ps) {
      if (ps.at == s.holder) ps.holder.to = {};
    }
    return true;
  }
  // ps 0 lets it in before it serves.
  bool ReturnHolder(Process& ps1) {
    if (s.holder == 1 || (s.holder_here && s.holders[0].lives)) return false;
    LoseHolder(ps1);
    if (s.went_back) return true;
    s.holder = 1;
    s.holder_here = s.holders[1].lives = true;
    for (Process& ps : s.ps) {
      if (!s.holders[0].lives) ConnectTo(ps, 1);
    }
    return true;
  }

  // ps 0.

  bool TakeReport(Process& ps1) {
    if (ps1.leader.to.empty()) return false;
    const Message m = ps1.leader.to.TakeFirst();
    if (s.recovers && rules_ != Rules::kBeginsEmpty) return GoBack();
    s.recovers = false;
    s.note.OnReport(m.a, static_cast<ReplicaPhase>(m.b));
    return true;
  }
  // Until the replica counts.
  bool GiveOrder(Process& ps1) {
    if (s.recovers || s.note.counts() || !ps1.lives() || !ps1.leader.from.empty()) return false;
    ps1.leader.from.Put({Kind::kNotice, 0, uint8_t(s.note.epoch()), 0});
    return true;
  }
  // The ps does not know it, or its report was lost. Needless orders are counted as faults.
  bool GiveNewOrder(Process& ps1) {
    const bool lost =
        ps1.gate.phase() == ReplicaPhase::Filled && ps1.leader.empty() && rules_ != Rules::kTellsOnce;
    return (lost || ps1.gate.epoch() < s.note.epoch()) && GiveOrder(ps1);
  }
  bool LoseHolder(Process&) {
    if (!s.holder_here) return false;
    if (s.recovers) return GoBack();
    s.note.BeginNext();
    s.holder_here = false;
    return true;
  }
  bool LoseDeadHolder(Process& ps1) { return !s.holders[s.holder].lives && LoseHolder(ps1); }
  // A new process comes as ps 1, and the one before is given up.
  bool Replace(Process& ps1) {
    const bool any = rules_ == Rules::kNoEpochs && s.holders[s.holder].session.complete();
    if (!any && !(s.note.counts() && s.holder_here)) return GoBack();
    ps1.leader.to = {};
    Process& ps = s.ps[++s.ps1];
    ps.life = Life::kFetches;
    ps.at = s.holder;
    ps.fetch_epoch = static_cast<uint8_t>(s.note.epoch());
    Record(ps, {Kind::kFetch, 0, ps.fetch_epoch, 0});
    s.recovers = true;
    return Send(ps);
  }
  bool ReplaceDead(Process& ps1) { return !ps1.lives() && Replace(ps1); }
  bool ReplaceLiving(Process& ps1) { return ps1.lives() && Replace(ps1); }
  bool Start(Process& ps1) {
    if (ps1.life != Life::kFetched) return false;
    ps1.life = Life::kServes;
    ps1.fetch_epoch = ps1.items = 0;
    s.recovers = false;
    return true;
  }

  // The worker.

  bool AskAgain(Process&) {
    if (s.requests.full() || s.sent == s.answered) return false;
    s.sent = s.answered;
    return Ask();
  }
  // The oldest request is lost, or its answer.
  bool AskLostAgain(Process& ps1) {
    const Process& ps = s.ps[s.peer];
    return s.requests.empty() && s.sent > s.answered && ps.lives() && ps.answers[s.answered] == 0 &&
           AskAgain(ps1);
  }
  bool Connect(Process& ps) {
    if (!ps.lives()) return false;
    if (ps.index != s.peer) std::memset(s.ps[s.peer].answers, 0, sizeof(ps.answers));
    s.peer = ps.index;
    s.requests = {};
    s.sent = s.answered;
    return Send(ps);
  }
  bool ConnectToNew(Process& ps1) { return s.peer != s.ps1 && ps1.serves() && Connect(ps1); }

  bool LoseRecord(Process& ps) { return ps.holder.to.Lose(); }
  bool LoseAck(Process& ps) { return ps.holder.from.Lose(); }
  bool LoseReport(Process& ps) { return ps.leader.to.Lose(); }
  bool LoseOrder(Process& ps) { return ps.leader.from.Lose(); }
  bool LoseRequest(Process&) { return s.requests.Lose(); }
  bool LoseAnswer(Process&) { return !std::exchange(s.loses_answer, true); }

 private:
  void Apply(int request, Content* content) {
    uint8_t& block = content->block[request % kBlocks];
    if (block >> request & 1) wrong_ = "a request is applied twice";
    block |= 1 << request;
  }
  void Record(Process& ps, Message record) {
    record.number = ++ps.made;
    ps.kept.Put(record);
  }
  void DropRecords(Process& ps) {
    ps.kept = {};
    ps.sent = ps.made;
  }
  bool SendAgain(Process& ps) {
    ps.sent = ps.kept.empty() ? ps.made : ps.kept.at[0].number - 1;
    return Send(ps);
  }
  // Sends the records and answers that may leave.
  bool Send(Process& ps) {
    for (; s.holders[ps.at].lives && ps.sent < ps.made && !ps.holder.to.full(); ++ps.sent) {
      ps.holder.to.Put(ps.kept.at[ps.sent + 1 - ps.kept.at[0].number]);
    }
    for (int i = 0; ps.index == s.peer && i < kRequests; ++i) {
      if (ps.answers[i] == 0 || !Leaves(ps, ps.answers[i] - 1)) continue;
      ps.answers[i] = 0;
      if (!std::exchange(s.loses_answer, false) && s.answered == i) ++s.answered;
    }
    return Ask();
  }
  bool Leaves(const Process& ps, int record) const {
    const bool late = rules_ == Rules::kLateAck && record <= ps.acknowledged;
    if (ps.gate.phase() == ReplicaPhase::Broken && (late || rules_ == Rules::kLeavesWhenBroken)) return true;
    return ps.gate.Leaves(record, ps.acknowledged);
  }
  bool Ask() {
    s.sent = std::max(s.sent, s.answered);
    while (s.sent < kRequests && !s.requests.full() && s.ps[s.peer].lives()) {
      s.requests.Put({Kind::kNotice, ++s.sent, 0, 0});
    }
    return true;
  }
  void Break(Process& ps) {
    ps.gate.SetBroken();
    DropRecords(ps);
    Report(ps);
  }
  void OnAck(Process& ps, uint8_t number) {
    ps.acknowledged = std::max(ps.acknowledged, number);
    ps.sent = std::max(ps.sent, number);
    while (!ps.kept.empty() && ps.kept.at[0].number <= number) ps.kept.TakeFirst();
    if (ps.units < kBlocks || ps.last_unit > ps.acknowledged) return;
    if (rules_ == Rules::kWaitsLate) ps.gate.BeginWait();
    ps.gate.SetFilled();
    if (ps.gate.phase() != ReplicaPhase::Filled) return;
    ps.units = ps.last_unit = 0;
    Report(ps);
  }
  Message AnswerTo(Message m, uint64_t node, Holder* holder) {
    ReplicaSession& session = holder->session;
    Content& replica = holder->replica;
    Take take = Take::kTake;
    if (m.kind == Kind::kRead) {
      return session.node() == node ? Message{Kind::kItem, replica.last, m.a, replica.block[m.a]} : Message{};
    }
    if (m.kind == Kind::kOpen || m.kind == Kind::kFetch) {
      const bool fetches = m.kind == Kind::kFetch;
      take = session.Open(node, m.number, fetches && rules_ == Rules::kNoEpochs ? session.epoch() : m.a,
                          fetches);
      if (take == Take::kDrop) return {Kind::kRefuse, 0, m.a, 0};
      if (take == Take::kTake && !fetches) {
        replica = {{}, m.b};
        holder->units = 0;
      }
    } else {
      if (rules_ != Rules::kAnyConversation || session.node() == node)
        take = session.OnRecord(node, m.number);
      if (take == Take::kTake) Keep(m, holder);
    }
    const auto last = std::max(m.number, static_cast<uint8_t>(session.last()));
    return take == Take::kDrop ? Message{} : Message{Kind::kAck, last, 0, 0};
  }
  void Keep(Message record, Holder* holder) {
    if (record.kind == Kind::kUnit) {
      holder->units |= 1 << record.a;
      holder->replica.block[record.a] = record.b;
      if (record.a == kBlocks - 1) holder->session.SetComplete();
    } else {
      if (holder->units >> (record.a % kBlocks) & 1) Apply(record.a, &holder->replica);
      holder->replica.last = record.a;
    }
  }
  bool MakeDead(Process& ps, Queue<2> to_holder, Queue<2> to_leader) {
    const auto [index, at] = std::pair(ps.index, ps.at);
    ps = first.ps[1];
    ps.life = Life::kDead;
    ps.index = index;
    ps.at = at;
    ps.holder.to = to_holder;
    ps.leader.to = to_leader;
    if (s.peer == index) s.requests = {};
    return true;
  }
  bool LostHolder() const { return s.left.holder_losses < first.left.holder_losses; }
  bool GoBack() {
    if (s.note.counts() && !LostHolder()) wrong_ = "the run goes back, though the replica counts";
    s = first;
    return s.went_back = true;
  }
  // Whether no holder takes a record of the process, unless that opens a replica.
  bool IsUnheard(const Process& ps) const {
    for (const Holder& holder : s.holders) {
      for (int number = 1; number <= ps.made + kRequests; ++number) {
        ReplicaSession session = holder.session;
        if (session.OnRecord(ps.node(), number) != Take::kDrop) return false;
      }
    }
    return rules_ != Rules::kAnyConversation;
  }

  const Rules rules_;
  const char* wrong_ = nullptr;
};

inline const char* Model::Judge() const {
  if (wrong_ != nullptr || s.went_back) return wrong_;
  bool there = false;
  for (const Holder& holder : s.holders) {
    if (!holder.session.complete() || holder.session.epoch() != s.note.epoch()) continue;
    there = true;
    for (int request = 1; request <= s.answered; ++request) {
      if (s.note.counts() && !holder.replica.Has(request))
        return "a replica counts, and lacks an answered request";
    }
  }
  if (s.note.counts() && !there && !LostHolder()) return "a replica counts, and is not there";
  for (int request = 1; request <= s.answered; ++request) {
    if (s.ps[s.ps1].serves() && !s.ps[s.ps1].content.Has(request)) return "ps 1 lacks an answered request";
  }
  return nullptr;
}

inline void Model::Simplify() {
  for (Process& ps : s.ps) {
    // Reports and records that change nothing.
    for (Queue<2>& queue = ps.leader.to; !queue.empty(); queue.TakeFirst()) {
      ReplicaNote note = s.note;
      note.OnReport(queue.at[0].a, static_cast<ReplicaPhase>(queue.at[0].b));
      if (note.epoch() != s.note.epoch() || note.counts() != s.note.counts()) break;
    }
    for (Queue<2>& queue = ps.holder.to; !queue.empty() && rules_ != Rules::kAnyConversation;
         queue.TakeFirst()) {
      ReplicaSession session = s.holders[ps.at].session;
      const bool opens = queue.at[0].kind != Kind::kPush && queue.at[0].kind != Kind::kUnit;
      if (opens || session.OnRecord(ps.node(), queue.at[0].number) != Take::kDrop) break;
    }
    if (ps.lives()) Send(ps);
    // A replaced process whose answers can never leave is as good as dead.
    const bool hears = !ps.holder.from.empty() || !ps.leader.from.empty();
    if (ps.index >= s.ps1 || !ps.serves() || hears || Leaves(ps, ps.made) || !IsUnheard(ps)) continue;
    MakeDead(ps, {}, {});
  }
  if (!s.ps[s.peer].lives()) ConnectToNew(s.ps[s.ps1]);
}

}  // namespace dtrain::replica_model
