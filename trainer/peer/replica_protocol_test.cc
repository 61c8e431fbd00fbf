// Searches all that can happen to the tasks of replica_model_test_util.h: each order of their steps and
// messages, with each loss of a process, of a connection and of a message, up to a number of faults.
#include "trainer/peer/replica_protocol.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/peer/replica_model_test_util.h"

namespace dtrain::replica_model {
namespace {

struct Step {
  const char* name;
  bool of_each;  // process of ps 1
  bool (Model::*does)(Process& ps);
  uint8_t Faults::*fault = nullptr;
};
const Step kSteps[] = {
    {"ps 1 takes a request", true, &Model::TakeRequest},
    {"ps 1 hears its holder", true, &Model::HearHolder},
    {"ps 1 hears ps 0", true, &Model::HearLeader},
    {"ps 1 records a unit", true, &Model::RecordUnit},
    {"ps 1 repeats what was lost", true, &Model::RepeatLost},
    {"ps 1 tells ps 0 again that its replica is broken", true, &Model::RepeatBroken},
    {"ps 1 gives up a holder that does not know it", true, &Model::GiveUpStranger},
    {"ps 1 leaves the old holder for the new one", true, &Model::LeaveOldHolder},
    {"the holder takes a record", true, &Model::TakeRecord},
    {"a new holder comes, empty", false, &Model::ReturnHolder, &Faults::holder_returns},
    {"ps 0 takes a report", false, &Model::TakeReport},
    {"ps 0 gives an order", false, &Model::GiveNewOrder},
    {"ps 0 notes the loss of the holder", false, &Model::LoseDeadHolder},
    {"ps 1 comes back", false, &Model::ReplaceDead},
    {"ps 0 starts ps 1, which is filled", false, &Model::Start},
    {"the worker connects to the new ps 1", false, &Model::ConnectToNew},
    {"the worker repeats what was lost", false, &Model::AskLostAgain},

    {"ps 1 is killed", false, &Model::Kill, &Faults::ps_losses},
    {"ps 1 is replaced while it lives", false, &Model::ReplaceLiving, &Faults::ps_losses},
    {"the holder is killed", false, &Model::KillHolder, &Faults::holder_losses},
    {"ps 0 gives up the holder, which lives", false, &Model::LoseHolder, &Faults::holder_losses},
    {"ps 1 gives up its holder", true, &Model::GiveUp, &Faults::link_faults},
    {"ps 1 repeats its records", true, &Model::Repeat, &Faults::link_faults},
    {"ps 1 repeats its report", true, &Model::RepeatReport, &Faults::link_faults},
    {"the worker repeats its requests", false, &Model::AskAgain, &Faults::link_faults},
    {"ps 0 repeats its order", false, &Model::GiveOrder, &Faults::link_faults},
    {"the holder's connection breaks", true, &Model::ConnectToHolder, &Faults::link_faults},
    {"ps 1 connects to the old holder", true, &Model::ConnectToOldHolder, &Faults::link_faults},
    {"the worker's connection breaks", true, &Model::Connect, &Faults::link_faults},
    {"a record is lost", true, &Model::LoseRecord, &Faults::link_faults},
    {"an acknowledgement is lost", true, &Model::LoseAck, &Faults::link_faults},
    {"a report is lost", true, &Model::LoseReport, &Faults::link_faults},
    {"an order is lost", true, &Model::LoseOrder, &Faults::link_faults},
    {"a request is lost", false, &Model::LoseRequest, &Faults::link_faults},
    {"the next answer is lost", false, &Model::LoseAnswer, &Faults::link_faults},
};

// Goes through all states, the nearest first.
class Search {
 public:
  Search(Rules rules, Faults faults);
  // What is wrong in the nearest such state, with the steps that lead to it; empty: nothing is, anywhere.
  std::string wrong;
  size_t states() const { return ways_.size(); }
  bool went_back = false;
  size_t ends[kProcesses] = {};  // of runs that did not go back, by how often ps 1 was lost

 private:
  struct Way {
    uint32_t from;
    uint8_t step, process;
  };
  void Add(uint32_t from, size_t step, int process);
  void FindStuck();
  void Tell(uint32_t state, const char* text);

  Model model_;
  // A state is known by its hash: of a million some two are the same with a probability of 10^-7.
  std::unordered_map<size_t, uint32_t> found_;
  std::deque<State> next_;                           // whose steps are not done yet
  std::vector<Way> ways_;                            // to each state
  std::vector<bool> ends_;                           // by state
  std::vector<std::pair<uint32_t, uint32_t>> free_;  // the steps without a fault: to, from
};

Search::Search(Rules rules, Faults faults) : model_(rules, faults) {
  model_.s = model_.first;
  Add(0, 0, 0);
  for (uint32_t i = 0; !next_.empty() && wrong.empty(); ++i, next_.pop_front()) {
    const State& s = next_.front();
    for (size_t step = 0; step < std::size(kSteps) && !s.ended(); ++step) {
      for (int p = kSteps[step].of_each ? 0 : s.ps1; p <= s.ps1 && wrong.empty(); ++p) {
        model_.s = s;
        uint8_t Faults::*const fault = kSteps[step].fault;
        if (fault != nullptr && (model_.s.left.*fault)-- == 0) continue;
        if (!(model_.*kSteps[step].does)(model_.s.ps[p])) continue;
        model_.Simplify();
        Add(i, step, p);
      }
    }
  }
  if (wrong.empty()) FindStuck();
}

void Search::Add(uint32_t from, size_t step, int process) {
  const State& s = model_.s;
  const size_t hash = std::hash<std::string_view>()({reinterpret_cast<const char*>(&s), sizeof(s)});
  const auto [place, is_new] = found_.try_emplace(hash, static_cast<uint32_t>(ways_.size()));
  if (kSteps[step].fault == nullptr) free_.emplace_back(place->second, from);
  if (is_new) {
    next_.push_back(s);
    ways_.push_back({from, static_cast<uint8_t>(step), static_cast<uint8_t>(process)});
    ends_.push_back(s.ended());
    went_back |= s.went_back;
    if (s.ended() && !s.went_back) ++ends[s.ps1];
  }
  if (const char* const text = model_.Judge()) Tell(place->second, text);
}

// Looks for a state from which no steps without a fault lead to an end.
void Search::FindStuck() {
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

void Search::Tell(uint32_t state, const char* text) {
  for (; state != 0; state = ways_[state].from) {
    const Way& way = ways_[state];
    const bool of_each = kSteps[way.step].of_each;
    const std::string process = of_each ? " (process " + std::to_string(way.process) + ")" : "";
    wrong = std::string("\n  ") + kSteps[way.step].name + process + wrong;
  }
  wrong = text + wrong;
}

TEST_CASE(
    "replica protocol: whatever is lost, an answered request counts once, and the run comes to its end") {
  for (const Faults faults :
       {Faults{2, 0, 0, 0}, Faults{1, 0, 1, 0}, Faults{1, 1, 0, 1}, Faults{0, 0, 2, 0}}) {
    const Search search(Rules::kReal, faults);
    INFO(search.states(), " states");
    CHECK(search.wrong == "");
    CHECK(search.went_back == (faults.ps_losses > 0));
    CHECK(search.ends[faults.ps_losses] > 0);
  }
}

TEST_CASE(
    "replica protocol: the search finds the stale copy without epochs, and what each other rule is for") {
  const struct {
    Rules broken;
    Faults faults;
    std::string wrong;
  } cases[] = {
      {Rules::kNoEpochs, {1, 0, 1, 0}, "ps 1 lacks an answered request"},
      {Rules::kOldOrder, {0, 0, 1, 0}, "a replica counts, and lacks an answered request"},
      {Rules::kLeavesWhenBroken, {0, 0, 1, 0}, "a replica counts, and lacks an answered request"},
      {Rules::kLateAck, {0, 0, 1, 0}, "a replica counts, and lacks an answered request"},
      {Rules::kWaitsLate, {0, 0, 0, 0}, "a replica counts, and lacks an answered request"},
      {Rules::kFilledEarly, {0, 0, 0, 0}, "a replica counts, and is not there"},
      {Rules::kAnyConversation, {1, 0, 0, 0}, "ps 1 lacks an answered request"},
      {Rules::kNumbersAnew, {0, 0, 1, 0}, "a replica counts, and is not there"},
      {Rules::kOpensTwice, {0, 1, 0, 1}, "a replica counts, and lacks an answered request"},
      {Rules::kBeginsEmpty, {1, 1, 0, 1}, "ps 1 lacks an answered request"},
      {Rules::kTellsOnce, {0, 0, 1, 0}, "the run never ends"},
  };
  for (const auto& c : cases) {
    const Search search(c.broken, c.faults);
    INFO(search.states(), " states: ", search.wrong);
    CHECK(search.wrong.substr(0, search.wrong.find('\n')) == c.wrong);
  }
}

TEST_CASE(
    "replica session: an open replica is answered again, and one that is old or incomplete is refused") {
  ReplicaSession session;
  REQUIRE(session.Open(7, 1, 5, false) == Take::kTake);
  REQUIRE(session.OnRecord(7, 2) == Take::kTake);
  CHECK(session.Open(7, 1, 5, false) == Take::kRepeated);
  CHECK(session.last() == 2);
  CHECK(session.Open(8, 1, 5, true) == Take::kDrop);  // it is incomplete
  session.SetComplete();
  CHECK(session.Open(8, 1, 4, true) == Take::kDrop);
  CHECK(session.Open(8, 1, 5, false) == Take::kDrop);
  CHECK(session.Open(8, 1, 5, true) == Take::kTake);
  REQUIRE(session.Open(8, 2, 6, false) == Take::kTake);
  CHECK(session.Open(9, 1, 6, true) == Take::kDrop);  // it is incomplete again
}

}  // namespace
}  // namespace dtrain::replica_model
