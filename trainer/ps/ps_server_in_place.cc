// PsServer of a ps 1 that leads a run to its end, since ps 0 does not come back (failure.replicas): it makes
// a ps 0 beside itself, which has what the replica had.
#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "base/error.h"
#include "trainer/config/config.h"
#include "trainer/ps/ps_server.h"

namespace dtrain {
namespace {

// How often the workers are told, who may miss it.
constexpr milliseconds kWelcomeAgain{500};
// How long another ps may take to come here, beside failure.detect_s.
constexpr double kComesInS = 5;

}  // namespace

// That ps 0, over the same channel. What the two say to each other waits for its turn.
struct PsServer::InPlace {
  PsTask task;
  RunHistory history;
  std::unique_ptr<PsServer> server;
  std::deque<net::Message> to_leader, to_ps;
  TimePoint next_welcome;  // to the workers, which may miss it
  TimePoint begun;
  std::set<net::NodeId> hear;  // that it leads
  bool all_hear = false;
};

void PsServer::Abort(int exit_code, const std::string& text, const RunSummary* summary) {
  (in_place_ ? in_place_->server->leader_ : leader_)->Abort(exit_code, text, summary);
}

RunSummary PsServer::Reached() const {
  if (in_place_) return in_place_->server->Reached();
  return ledger_ == nullptr ? RunSummary() : ledger_->Reached();
}

PsServer* PsServer::InPlaceFor(net::NodeId from) const {
  const bool its = in_place_ && in_place_->server->members_.Find(from) != nullptr;
  if (!its) return nullptr;
  in_place_->hear.insert(from);
  return in_place_->server.get();
}

void PsServer::LeadInPlace(const std::string& why) {
  log_.Warning("{}: this ps 1 leads the run to its end, from the replica of ps 0", why);
  auto place = std::make_shared<InPlace>(InPlace{task_, {}, nullptr, {}, {}, {}, Clock::now(), {}, false});
  place->task.self = {Role::kPs, 0};
  place->task.take_killed = {};
  place->history.run = outbox_.run();
  place->history.begun = true;
  place->history.replica = holder_->epoch();
  place->history.lost_since = holder_->heard();
  place->server = std::make_unique<PsServer>(place->task, make_leader_, place->history);
  PsServer& leads = *place->server;
  StateImage state;
  const std::string wrong = holder_->HandOver(
      {config_, place->task.self, task_.layout, leads.shard_, leads.members_, *leads.rule_, &state});
  if (!wrong.empty()) throw PeerLost("{}, and {}.", why, wrong);
  leads.ledger_->TakeOver(state);
  in_place_ = std::move(place);
  leads.outbox_.MoveHere(leader_node_,
                         [this](net::Message message) { in_place_->to_ps.push_back(std::move(message)); });
  const auto to_leader = [this](net::Message message) { in_place_->to_leader.push_back(std::move(message)); };
  outbox_.MoveHere(leader_node_, to_leader);
  leader_->MoveLeaderHere(to_leader);
  leads.ledger_->EndInPlace(why);
  leads.registrar_->WelcomeBack();
}

// Who is heard here is heard there. Another ps is waited for until its heartbeats come here.
void PsServer::TendInPlace(TimePoint now) {
  PsServer& leads = *in_place_->server;
  for (Member& member : leads.members_.all()) {
    const Member* const here = member.is_worker() ? members_.Worker(member.task.index) : nullptr;
    const bool comes = member.node == leader_node_ || (in_place_->hear.count(member.node | 1) == 0 &&
                                                       SecondsBetween(in_place_->begun, now) < kComesInS);
    member.heard |= here == nullptr ? comes : here->here() && here->incarnation == member.incarnation;
  }
  leads.Tick(now);
  if (leads.outbox_.late()) leads.SendLate();
  while (!in_place_->to_leader.empty() || !in_place_->to_ps.empty()) {
    for (net::Message& message : std::exchange(in_place_->to_leader, {})) {
      message.key = leads.members_.Ps(1).key;
      leads.Take(leader_node_, message);
    }
    for (net::Message& message : std::exchange(in_place_->to_ps, {})) {
      if (const wire::Envelope* const envelope = net::Decode(message)) leader_->OnMessage(*envelope, message);
    }
  }
  const std::vector<Member>& members = leads.members_.all();
  const bool all = std::all_of(members.begin(), members.end(), [this](const Member& member) {
    return !member.here() || member.node == leader_node_ || in_place_->hear.count(member.node) > 0;
  });
  const bool late = SecondsBetween(in_place_->begun, now) > config_.failure.detect_s;
  if ((all || late) && !std::exchange(in_place_->all_hear, true)) leads.ledger_->AllHear();
  if (now < in_place_->next_welcome) return;
  in_place_->next_welcome = now + kWelcomeAgain;
  for (const Member& member : members_.all()) {
    if (!member.is_worker() || !member.here()) continue;
    outbox_.Send(member.node, 0, [](auto& builder) {
      return wire::CreateWelcome(builder, 0, false, 0, 0, 0, /*leads=*/true);
    });
  }
}

}  // namespace dtrain
