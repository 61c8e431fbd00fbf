// Searches all that can happen to the replica of ps 0, as replica_protocol_test.cc does for that of another
// ps: the processes of ps 0, ps 1, which may be lost too, and a worker with 2 requests. ps 0 names its epochs
// itself, its records count turn by turn, and a new process goes on from what ps 1 has whole, or goes back.
// What it does not cover: that ps 1 is lost after ps 0 was replaced while it lives.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/peer/replica_protocol.h"

namespace dtrain {
namespace {

using wire::ReplicaPhase;
using Take = ReplicaSession::Take;

constexpr int kRequests = 2;
constexpr int kUnits = 2;      // blocks; a request is a gradient of one of them
constexpr int kProcesses = 4;  // of ps 0: a record of a dead one that comes late may cost one more
constexpr uint8_t kLater = 255;

// kReal, or the rule that is broken.
enum class Rules {
  kReal,
  kNotOwn,        // answers leave when ps 0 has named the next epoch, as on another ps
  kCountsAtOnce,  // records count before their turn has ended
  kAnyProcess,    // ps 1 opens a replica for a process that was replaced
};

enum class Kind : uint8_t { kNone, kOpen, kFetch, kPush, kUnit, kTurn, kAck, kItem, kRefuse, kReplaced };

// What ps 0 has: by block the requests that are in it, the latest request taken, and of the leader's state
// how many it has counted, and the epoch of its note.
struct Content {
  uint8_t block[kUnits] = {};
  uint8_t taken = 0, counted = 0, epoch = 0;
  bool Has(int request) const { return block[request % kUnits] >> request & 1; }
};
struct Message {
  Kind kind = Kind::kNone;
  uint8_t number = 0, a = 0;
  Content content;
};
template <int kSize>
struct Queue {
  Message at[kSize];
  uint8_t size = 0;
  bool empty() const { return size == 0; }
  bool full() const { return size == kSize; }
  void Put(const Message& message) { at[size++] = message; }
  Message TakeFirst() {
    const Message first = at[0];
    std::move(at + 1, at + size, at);
    at[--size] = {};
    return first;
  }
};

enum class Life : uint8_t { kNotStarted, kFetches, kServes, kDead };

// A process of ps 0, with its connection to ps 1.
struct Process {
  ReplicaGate gate{/*own=*/true};
  ReplicaNote note;
  Life life = Life::kNotStarted;
  Content content;
  uint8_t made = 0, sent = 0, acknowledged = 0;  // the latest record
  uint8_t turn = 0;                              // the one that has ended a turn
  bool records = false;                          // ps 1 has opened the replica
  uint8_t units = 0, last_unit = 0;
  uint8_t answers[kRequests] = {};  // 1 + the record that the answer waits for, or kLater; 0: none
  uint8_t at = 0;                   // the process of ps 1
  Queue<12> kept;                   // not acknowledged
  Queue<2> to, from;
  bool serves() const { return life == Life::kServes; }
  bool lives() const { return serves() || life == Life::kFetches; }
};
// A process of ps 1.
struct Holder {
  ReplicaSession session;
  Content replica;
  Queue<6> turn;  // records of one that has not ended
  uint8_t units = 0, owner = 0;
  bool lives = false, has_state = false;
};
struct Faults {
  uint8_t ps0_kills, ps0_replacements, ps1_losses, link_faults;
};
struct State {
  Process ps[kProcesses];
  Holder holders[2];
  uint8_t ps0 = 0, holder = 0;  // the latest process
  bool went_back = false, was_whole = false;
  // The worker: the latest request answered, and sent; the process at its other end.
  uint8_t answered = 0, sent = 0, peer = 0;
  Faults left{};

  bool ended() const {
    const Process& now = ps[ps0];
    return went_back || (answered == kRequests && now.serves() && now.gate.phase() == ReplicaPhase::Filled);
  }
};

class Model {
 public:
  Model(Rules rules, Faults faults) : rules_(rules), faults_(faults) {
    s.left = faults;
    s.holders[0].lives = true;
    s.ps[0].life = Life::kServes;
    if (rules == Rules::kNotOwn) {
      for (Process& ps : s.ps) ps.gate = ReplicaGate();
    }
    OpenNext(s.ps[0]);
  }
  State s;
  const char* Judge() const;

  // ps 0.

  bool TakeRequest(Process& ps) {
    if (!ps.serves() || IndexOf(ps) != s.peer || s.sent == kRequests) return false;
    const uint8_t request = ++s.sent;
    if (request > ps.content.taken) {
      Apply(request, &ps.content);
      ps.content.taken = ps.content.counted = request;
      if (ps.records) Record(ps, {Kind::kPush, 0, request, {}});
    }
    ps.answers[request - 1] = kLater;
    return Send(ps);
  }
  bool EndTurn(Process& ps) {
    const bool owes = std::count(std::begin(ps.answers), std::end(ps.answers), kLater) > 0;
    if (!ps.serves() || !ps.records || (ps.made == ps.turn && !owes)) return false;
    if (ps.made != ps.turn) Record(ps, {Kind::kTurn, 0, 0, StateOf(ps)});
    ps.turn = ps.made;
    for (uint8_t& answer : ps.answers) {
      if (answer == kLater) answer = static_cast<uint8_t>(ps.made + 1);
    }
    return Send(ps);
  }
  bool RecordUnit(Process& ps) {
    if (!ps.serves() || !ps.records || ps.gate.phase() != ReplicaPhase::Filling || ps.units == kUnits)
      return false;
    Record(ps, {Kind::kUnit, 0, ps.units, StateOf(ps)});
    if (++ps.units == kUnits) {
      ps.last_unit = ps.made;
      ps.gate.BeginWait();
    }
    return Send(ps);
  }
  bool HearHolder(Process& ps) {
    if (!ps.lives() || ps.from.empty()) return false;
    const Message m = ps.from.TakeFirst();
    if (m.kind == Kind::kReplaced) return MakeDead(ps);
    if (m.kind == Kind::kRefuse) Break(ps);
    if (m.kind == Kind::kItem && ps.life == Life::kFetches) {
      ps.content = m.content;
      ps.life = Life::kServes;
      ps.records = true;
      ps.turn = ps.made;
      while (ps.note.epoch() < m.content.epoch) ps.note.BeginNext();
    }
    if (m.kind == Kind::kAck || m.kind == Kind::kItem) OnAck(ps, m.number);
    return Send(ps);
  }
  bool NameNext(Process& ps) {
    if (!ps.serves() || ps.gate.phase() != ReplicaPhase::Broken) return false;
    ps.note.OnReport(ps.gate.epoch(), ReplicaPhase::Broken);
    return OpenNext(ps);
  }
  bool RepeatLost(Process& ps) {
    return ps.lives() && ps.to.empty() && ps.from.empty() && !ps.kept.empty() && SendAgain(ps);
  }
  bool ConnectToNew(Process& ps) { return ps.lives() && ps.at < s.holder && Connect(ps); }
  // Asks ps 1 first.
  bool Replace(Process&) {
    const Holder& holder = s.holders[s.holder];
    if (!holder.lives || s.ps0 + 1 == kProcesses) return false;
    if (!holder.session.complete()) return s.went_back = true;
    Process& ps = s.ps[++s.ps0];
    ps.life = Life::kFetches;
    ps.at = s.holder;
    ps.gate.GoOn(holder.session.epoch());
    Record(ps, {Kind::kFetch, 0, static_cast<uint8_t>(holder.session.epoch()), {}});
    return Send(ps);
  }
  bool ReplaceDead(Process& ps) { return !ps.lives() && Replace(ps); }
  bool ReplaceLiving(Process& ps) { return ps.lives() && Replace(ps); }
  bool Kill(Process& ps) { return ps.lives() && MakeDead(ps); }
  bool GiveUp(Process& ps) { return ps.serves() && ps.gate.records() && Break(ps); }

  // ps 1.

  bool TakeRecord(Process& ps) {
    Holder& holder = s.holders[ps.at];
    if (!holder.lives || ps.to.empty() || ps.from.full()) return false;
    const Message answer = AnswerTo(ps.to.TakeFirst(), IndexOf(ps), &holder);
    if (ps.lives() && answer.kind != Kind::kNone) ps.from.Put(answer);
    return true;
  }
  bool KillHolder(Process&) {
    if (!std::exchange(s.holders[s.holder].lives, false)) return false;
    for (Process& ps : s.ps) ps.to = {};
    return true;
  }
  // ps 0 has noted the loss, and lets the new process in.
  bool ReturnHolder(Process& ps) {
    if (s.holders[s.holder].lives) return false;
    s.holders[++s.holder].lives = true;
    if (!ps.serves()) return true;
    ps.note.BeginNext();
    return OpenNext(ps);
  }

  // Connections.

  bool Connect(Process& ps) {
    const bool opens = !ps.kept.empty() && ps.kept.at[0].kind == Kind::kOpen;
    if (!ps.lives()) return false;
    const bool may_be_open = opens && ps.sent >= ps.kept.at[0].number;
    ps.to = {};
    ps.from = {};
    ps.at = s.holder;
    return may_be_open ? Break(ps) : SendAgain(ps);
  }
  bool ConnectWorker(Process&) {
    std::fill(std::begin(s.ps[s.peer].answers), std::end(s.ps[s.peer].answers), uint8_t{0});
    s.sent = s.answered;
    return true;
  }
  bool MoveWorker(Process& ps) {
    if (s.peer == s.ps0 || !ps.serves()) return false;
    ConnectWorker(ps);
    s.peer = s.ps0;
    return true;
  }

 private:
  uint8_t IndexOf(const Process& ps) const { return static_cast<uint8_t>(&ps - s.ps); }
  static Content StateOf(const Process& ps) {
    Content content = ps.content;
    content.epoch = static_cast<uint8_t>(ps.note.epoch());
    return content;
  }
  void Apply(int request, Content* content) {
    uint8_t& block = content->block[request % kUnits];
    if (block >> request & 1) wrong_ = "a request is applied twice";
    block = static_cast<uint8_t>(block | 1 << request);
  }
  static void Record(Process& ps, Message record) {
    record.number = ++ps.made;
    ps.kept.Put(record);
  }
  // Each epoch has a conversation of its own, whose numbers only have to be others.
  bool OpenNext(Process& ps) {
    if (!ps.gate.OnEpoch(ps.note.epoch())) return false;
    ps.made = ps.acknowledged = ps.turn = static_cast<uint8_t>(16 * ps.note.epoch());
    ps.units = ps.last_unit = 0;
    for (uint8_t& answer : ps.answers) answer = answer == 0 ? 0 : kLater;
    Drop(ps);
    ps.at = s.holder;
    Record(ps, {Kind::kOpen, 0, static_cast<uint8_t>(ps.note.epoch()), {}});
    return Send(ps);
  }
  static void Drop(Process& ps) {
    ps.kept = {};
    ps.to = {};
    ps.from = {};
    ps.sent = ps.made;
    ps.records = false;
  }
  // One that fills itself gives it up, and the run goes back.
  bool Break(Process& ps) {
    if (ps.life == Life::kFetches && IndexOf(ps) == s.ps0) s.went_back = true;
    if (ps.life == Life::kFetches) return MakeDead(ps);
    ps.gate.SetBroken();
    Drop(ps);
    return Send(ps);
  }
  bool SendAgain(Process& ps) {
    ps.sent = ps.kept.empty() ? ps.made : static_cast<uint8_t>(ps.kept.at[0].number - 1);
    return Send(ps);
  }
  bool Send(Process& ps) {
    for (; s.holders[ps.at].lives && ps.sent < ps.made && !ps.to.full(); ++ps.sent) {
      ps.to.Put(ps.kept.at[ps.sent + 1 - ps.kept.at[0].number]);
    }
    for (int i = 0; IndexOf(ps) == s.peer && i < kRequests; ++i) {
      const uint8_t answer = ps.answers[i];
      const bool leaves =
          answer == kLater ? !ps.gate.answers_wait() : ps.gate.Leaves(answer - uint64_t{1}, ps.acknowledged);
      if (answer == 0 || !leaves) continue;
      ps.answers[i] = 0;
      if (s.answered == i) ++s.answered;
    }
    return true;
  }
  void OnAck(Process& ps, uint8_t number) {
    ps.acknowledged = std::max(ps.acknowledged, number);
    ps.sent = std::max(ps.sent, number);
    while (!ps.kept.empty() && ps.kept.at[0].number <= number) ps.kept.TakeFirst();
    if (!ps.records) {
      ps.gate.SetOpened();
      ps.records = true;
    }
    if (ps.last_unit == 0 || ps.last_unit > number) return;
    ps.last_unit = 0;
    ps.gate.SetFilled();
    ps.note.OnReport(ps.gate.epoch(), ReplicaPhase::Filled);
  }
  Message AnswerTo(const Message& m, uint8_t from, Holder* holder) {
    ReplicaSession& session = holder->session;
    const uint64_t node = (m.number >> 4) + 64 * (from + uint64_t{1});  // the conversation
    const bool fetches = m.kind == Kind::kFetch;
    Take take = Take::kTake;
    if (session.node() != node && (m.kind == Kind::kOpen || fetches)) {
      const bool replaced = holder->owner != 0 && holder->owner != from + 1 && rules_ != Rules::kAnyProcess;
      if (!fetches && replaced) return {Kind::kReplaced, 0, 0, {}};
      take = session.Open(node, m.number, m.a, fetches);
      if (take == Take::kDrop) return {Kind::kRefuse, 0, 0, {}};
      holder->owner = static_cast<uint8_t>(from + 1);
      holder->turn = {};
      if (!fetches) *holder = {session, {}, {}, 0, holder->owner, true, false};
    } else if (session.node() != node) {
      return {Kind::kRefuse, 0, 0, {}};
    } else {
      take = session.OnRecord(node, m.number);
      if (take == Take::kTake) Keep(m, holder);
    }
    if (take == Take::kDrop) return {};
    const auto last = static_cast<uint8_t>(session.last());
    return fetches ? Message{Kind::kItem, last, 0, holder->replica} : Message{Kind::kAck, last, 0, {}};
  }
  void Keep(const Message& record, Holder* holder) {
    holder->turn.Put(record);
    if (record.kind != Kind::kTurn && rules_ != Rules::kCountsAtOnce) return;
    while (!holder->turn.empty()) Count(holder->turn.TakeFirst(), holder);
    const bool whole = holder->units == (1 << kUnits) - 1 && holder->has_state;
    if (whole && !holder->session.complete()) holder->session.SetComplete();
  }
  void Count(const Message& record, Holder* holder) {
    Content& replica = holder->replica;
    if (record.kind == Kind::kUnit) {
      holder->units = static_cast<uint8_t>(holder->units | 1 << record.a);
      replica.block[record.a] = record.content.block[record.a];
      replica.taken = record.content.taken;
    } else if (record.kind == Kind::kPush) {
      if (holder->units >> (record.a % kUnits) & 1) Apply(record.a, &replica);
      replica.taken = record.a;
    } else {
      holder->has_state = true;
      replica.counted = record.content.counted;
      replica.epoch = record.content.epoch;
    }
  }
  // What it has sent still arrives.
  bool MakeDead(Process& ps) {
    Process dead;
    dead.life = Life::kDead;
    dead.at = ps.at;
    dead.to = ps.to;
    ps = dead;
    return true;
  }

  const Rules rules_;
  const Faults faults_;
  const char* wrong_ = nullptr;
};

const char* Model::Judge() const {
  if (wrong_ != nullptr) return wrong_;
  const bool only_killed = s.left.ps0_replacements == faults_.ps0_replacements &&
                           s.left.ps1_losses == faults_.ps1_losses &&
                           s.left.link_faults == faults_.link_faults;
  if (s.went_back) return only_killed && s.was_whole ? "the run goes back, though ps 1 has all" : nullptr;
  const Process& ps0 = s.ps[s.ps0];
  const Holder& holder = s.holders[s.holder];
  const bool whole = holder.lives && holder.session.complete();
  if (whole && holder.replica.counted != holder.replica.taken)
    return "the replica has one turn of the leader and another of the parameters";
  for (int request = 1; request <= s.answered; ++request) {
    if (ps0.serves() && !ps0.content.Has(request)) return "ps 0 lacks an answered request";
    if (whole && !holder.replica.Has(request)) return "the replica is whole, and lacks an answered request";
  }
  return nullptr;
}

struct Step {
  const char* name;
  bool of_each;  // process of ps 0
  bool (Model::*does)(Process& ps);
  uint8_t Faults::*fault = nullptr;
};
const Step kSteps[] = {
    {"ps 0 takes a request", true, &Model::TakeRequest},
    {"ps 0 ends its turn", true, &Model::EndTurn},
    {"ps 0 records a unit", true, &Model::RecordUnit},
    {"ps 0 hears ps 1", true, &Model::HearHolder},
    {"ps 0 names the next epoch", true, &Model::NameNext},
    {"ps 0 repeats what was lost", true, &Model::RepeatLost},
    {"ps 0 connects to the new ps 1", true, &Model::ConnectToNew},
    {"ps 1 takes a record", true, &Model::TakeRecord},
    {"a new ps 1 comes, empty", false, &Model::ReturnHolder},
    {"a new ps 0 comes", false, &Model::ReplaceDead},
    {"the worker goes to the new ps 0", false, &Model::MoveWorker},

    {"ps 0 is killed", false, &Model::Kill, &Faults::ps0_kills},
    {"ps 0 is replaced while it lives", false, &Model::ReplaceLiving, &Faults::ps0_replacements},
    {"ps 1 is killed", false, &Model::KillHolder, &Faults::ps1_losses},
    {"ps 0 gives up ps 1", true, &Model::GiveUp, &Faults::link_faults},
    {"the connection to ps 1 breaks", true, &Model::Connect, &Faults::link_faults},
    {"the connection of the worker breaks", false, &Model::ConnectWorker, &Faults::link_faults},
};

// A state as bytes; equal ones have the same future.
class Bytes {
 public:
  std::string text;
  template <typename... Numbers>
  void Add(Numbers... numbers) {
    (text.push_back(static_cast<char>(numbers)), ...);
  }
  void Add(const Content& content) {
    Add(content.block[0], content.block[1], content.taken, content.counted, content.epoch);
  }
  template <int kSize>
  void Add(const Queue<kSize>& queue) {
    Add(queue.size);
    for (int i = 0; i < queue.size; ++i) {
      Add(queue.at[i].kind, queue.at[i].number, queue.at[i].a);
      Add(queue.at[i].content);
    }
  }
};

std::string BytesOf(const State& s) {
  Bytes bytes;
  for (const Process& ps : s.ps) {
    bytes.Add(ps.life, ps.at);
    bytes.Add(ps.to);
    if (!ps.lives()) continue;
    bytes.Add(ps.gate.epoch(), ps.gate.phase(), ps.gate.answers_wait(), ps.note.epoch(), ps.note.counts());
    bytes.Add(ps.content);
    bytes.Add(ps.made, ps.sent, ps.acknowledged, ps.turn, ps.records, ps.units, ps.last_unit);
    for (const uint8_t answer : ps.answers) bytes.Add(answer);
    bytes.Add(ps.kept);
    bytes.Add(ps.from);
  }
  for (const Holder& holder : s.holders) {
    bytes.Add(holder.lives);
    if (!holder.lives) continue;
    bytes.Add(holder.session.epoch(), holder.session.node() >> 6, holder.session.node(),
              holder.session.last(), holder.session.complete(), holder.units, holder.owner, holder.has_state);
    bytes.Add(holder.replica);
    bytes.Add(holder.turn);
  }
  bytes.Add(s.ps0, s.holder, s.went_back, s.was_whole, s.answered, s.sent, s.peer);
  bytes.Add(s.left.ps0_kills, s.left.ps0_replacements, s.left.ps1_losses, s.left.link_faults);
  return std::move(bytes.text);
}

// Goes through all states, the nearest first.
class Search {
 public:
  Search(Rules rules, Faults faults) : model_(rules, faults) {
    Add(0, 0, 0);
    for (uint32_t i = 0; !next_.empty() && wrong.empty(); ++i, next_.pop_front()) {
      const State& s = next_.front();
      for (size_t step = 0; step < std::size(kSteps) && !s.ended(); ++step) {
        for (int p = kSteps[step].of_each ? 0 : s.ps0; p <= s.ps0 && wrong.empty(); ++p) {
          model_.s = s;
          uint8_t Faults::*const fault = kSteps[step].fault;
          if (fault != nullptr && (model_.s.left.*fault)-- == 0) continue;
          if (!(model_.*kSteps[step].does)(model_.s.ps[p])) continue;
          const Holder& holder = model_.s.holders[model_.s.holder];
          model_.s.was_whole |= holder.lives && holder.session.complete();
          Add(i, step, p);
        }
      }
    }
    if (wrong.empty()) FindStuck();
  }
  // What is wrong in the nearest such state, with the steps that lead to it; empty: nothing is, anywhere.
  std::string wrong;
  size_t states() const { return ways_.size(); }
  bool went_back = false;
  size_t ends[kProcesses] = {};  // of runs that did not go back, by how often ps 0 was lost

 private:
  struct Way {
    uint32_t from;
    uint8_t step;
    int process;
  };
  void Add(uint32_t from, size_t step, int process) {
    const State& s = model_.s;
    const auto [place, is_new] = found_.try_emplace(BytesOf(s), static_cast<uint32_t>(ways_.size()));
    if (kSteps[step].fault == nullptr) free_.emplace_back(place->second, from);
    if (is_new) {
      next_.push_back(s);
      ways_.push_back({from, static_cast<uint8_t>(step), process});
      ends_.push_back(s.ended());
      went_back |= s.went_back;
      if (s.ended() && !s.went_back) ++ends[s.ps0];
    }
    if (const char* const text = model_.Judge()) Tell(place->second, text);
  }
  // Looks for a state from which no steps without a fault lead to an end.
  void FindStuck() {
    std::sort(free_.begin(), free_.end());
    std::vector<bool> ends = ends_;
    std::vector<uint32_t> next;
    for (uint32_t i = 0; i < ends.size(); ++i) {
      if (ends[i]) next.push_back(i);
    }
    while (!next.empty()) {
      const uint32_t to = next.back();
      next.pop_back();
      auto step = std::lower_bound(free_.begin(), free_.end(), std::make_pair(to, uint32_t{0}));
      for (; step != free_.end() && step->first == to; ++step) {
        if (!ends[step->second]) next.push_back(step->second);
        ends[step->second] = true;
      }
    }
    const auto stuck = std::find(ends.begin(), ends.end(), false);
    if (stuck != ends.end()) Tell(static_cast<uint32_t>(stuck - ends.begin()), "the run never ends");
  }
  void Tell(uint32_t state, const char* text) {
    for (; state != 0; state = ways_[state].from) {
      const Way& way = ways_[state];
      wrong = std::string("\n  ") + kSteps[way.step].name + " (" + std::to_string(way.process) + ")" + wrong;
    }
    wrong = text + wrong;
  }

  Model model_;
  std::unordered_map<std::string, uint32_t> found_;
  std::deque<State> next_;  // whose steps are not done yet
  std::vector<Way> ways_;   // to each state
  std::vector<bool> ends_;  // by state
  std::vector<std::pair<uint32_t, uint32_t>> free_;
};

TEST_CASE("leader replica: whatever is lost, a whole copy at ps 1 has all that was answered, turn by turn") {
  for (const Faults faults :
       {Faults{2, 0, 0, 0}, Faults{1, 1, 0, 0}, Faults{1, 0, 1, 0}, Faults{1, 0, 0, 1}, Faults{0, 0, 1, 1}}) {
    const Search search(Rules::kReal, faults);
    CAPTURE(search.states());
    CHECK(search.wrong == "");
    const int losses = faults.ps0_kills + faults.ps0_replacements;
    CHECK(search.went_back == (losses > 0));
    CHECK(search.ends[losses] > 0);
  }
}

TEST_CASE("leader replica: the search finds what each rule is for") {
  const struct {
    Rules broken;
    Faults faults;
    std::string wrong;
  } cases[] = {
      {Rules::kNotOwn, {0, 0, 0, 1}, "the replica is whole, and lacks an answered request"},
      {Rules::kCountsAtOnce,
       {0, 0, 0, 0},
       "the replica has one turn of the leader and another of the parameters"},
      {Rules::kAnyProcess, {0, 1, 0, 0}, "ps 0 lacks an answered request"},
  };
  for (const auto& c : cases) {
    const Search search(c.broken, c.faults);
    INFO(search.states(), " states: ", search.wrong);
    CHECK(search.wrong.substr(0, search.wrong.find('\n')) == c.wrong);
  }
}

}  // namespace
}  // namespace dtrain
