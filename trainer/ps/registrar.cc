#include "trainer/ps/registrar.h"

#include <filesystem>

#include "base/error.h"
#include "base/fault_point.h"
#include "trainer/config/config.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

using wire::Reason;

}  // namespace

Registrar::Registrar(const Parts& parts)
    : parts_(parts),
      config_(parts.task.config),
      members_(parts.members),
      outbox_(parts.outbox),
      leader_(parts.leader),
      ledger_(parts.leader.ledger()),
      log_(parts.task.log),
      refused_(log_, "refused tasks") {}

void Registrar::OnHello(net::NodeId from, uint32_t key, const wire::Envelope& envelope,
                        const wire::Hello& hello) {
  if (!leader_.run().known()) {
    return outbox_.RefuseQuestion(from, envelope, Reason::NotReady,
                                  fmt::format("{} has not joined ps 0 yet", TaskName(parts_.task.self)));
  }
  if (leader_.fills()) return RefuseWhileItFills(from, envelope);
  outbox_.set_run(leader_.run());
  const std::string task = TaskName(TaskOf(hello));
  if (!parts_.task.channel.MayActAs(key, task)) {
    return RefuseHello(from, envelope, hello,
                       {false, Reason::WrongTask, fmt::format("its key is not the one of {}", task), {}});
  }
  const bool was_here = members_.Find(from) != nullptr;
  const auto closed = [this](net::NodeId old) { return IsClosed(old); };
  const TaskTable::Decision decision = members_.Admit(from, hello, closed);
  if (!decision.welcome) return RefuseHello(from, envelope, hello, decision);
  outbox_.DropLate(decision.replaced.value_or(from));
  members_.Find(from)->key = key;
  Welcome(*members_.Find(from), was_here, decision.replaced.has_value());
}

void Registrar::RefuseWhileItFills(net::NodeId from, const wire::Envelope& envelope) {
  outbox_.RefuseQuestion(from, envelope, Reason::NotReady,
                         fmt::format("{} fills itself from its replica", TaskName(parts_.task.self)));
}

bool Registrar::IsClosed(net::NodeId node) {
  const auto ping = [](auto& builder) {
    return wire::CreateHeartbeat(builder, builder.CreateString("serve"), 0, builder.CreateString(""));
  };
  return outbox_.Send(node, 0, ping) == net::SendResult::kGone;
}

void Registrar::RefuseHello(net::NodeId from, const wire::Envelope& envelope, const wire::Hello& hello,
                            const TaskTable::Decision& decision) {
  outbox_.RefuseQuestion(from, envelope, decision.reason, decision.text);
  if (decision.tells) {
    refused_.Warn(
        from, wire::EnumNameReason(decision.reason),
        fmt::format("two tasks say that they are {}: {}. If the first one is dead, the newcomer takes "
                    "its place after failure.detect_s = {}; else give each an index of its own",
                    TaskName(TaskOf(hello)), decision.text, config_.failure.detect_s));
  }
  const bool comes_again =
      decision.reason == Reason::Held || decision.reason == Reason::NotReady || decision.text.empty();
  if (comes_again) return;
  refused_.Warn(from, wire::EnumNameReason(decision.reason),
                fmt::format("refused a task ({}): {}", ShortText(hello.process()->str()), decision.text));
}

// `was_here`: it said Hello on this connection before. `replaces`: another process was here.
void Registrar::Welcome(Member& member, bool was_here, bool replaces) {
  if (ledger_ != nullptr) ledger_->OnWelcome(member, replaces);
  if (replaces) {
    log_.Warning("{} takes the place of an earlier one whose connection is gone", members_.NameOf(member));
    ForgetWorkersOf(member);
  } else {
    log_.Debug("{} is here", members_.NameOf(member));
  }
  // Drops what it had open before this Hello.
  if (ledger_ != nullptr && (replaces || was_here)) ledger_->Left(member);
  parts_.rule.Lost(member);
  SendWelcome(member);
}

void Registrar::SendWelcome(const Member& member) {
  const bool saves = parts_.task.self.index == 0 && !config_.checkpoint.dir.empty();
  const auto heartbeat_ms = static_cast<uint32_t>(Heartbeat::Interval(config_.failure.detect_s).count());
  const FaultScope fault("start.welcome");
  const uint64_t feed_token = member.is_worker() ? parts_.feed_token : 0;
  const uint64_t replica = ledger_ == nullptr ? 0 : ledger_->ReplicaFor(member);
  const uint64_t incarnation = ledger_ == nullptr ? 0 : ledger_->Incarnation();
  const auto welcome = [&](auto& builder) {
    return wire::CreateWelcome(builder, heartbeat_ms, saves, feed_token, replica, 0, false, incarnation);
  };
  // Who is to hold the replica of ps 0 cannot wait for that.
  const bool holds = ledger_ != nullptr && !member.is_worker() && member.task.index == 1;
  holds ? static_cast<void>(outbox_.Send(member.node, 0, welcome)) : outbox_.Answer(member.node, 0, welcome);
}

void Registrar::WelcomeBack() {
  for (const Member& member : members_.all()) {
    if (member.here()) SendWelcome(member);
  }
}

void Registrar::RefuseStranger(net::NodeId from, uint32_t key, const wire::Envelope& envelope) {
  const bool status = key != 0 && parts_.task.channel.MayActAs(key, "status");
  if (status && envelope.body_as_Heartbeat() != nullptr) return SendBeat(from, RunStatus());
  if (const wire::AskStatus* const ask = envelope.body_as_AskStatus()) {
    if (ledger_ == nullptr) {
      return outbox_.RefuseQuestion(from, envelope, Reason::WrongTask,
                                    fmt::format("this is {}: ask ps 0 at {}", TaskName(parts_.task.self),
                                                KnownAddress(config_.cluster, {Role::kPs, 0})));
    }
    if (status || (key == 0 && IsToken(ask->token()))) return TellStatus(from, envelope);
    return outbox_.RefuseQuestion(from, envelope, Reason::Unregistered, WhoMayAsk(key, ask->token()));
  }
  if (leader_.fills()) return RefuseWhileItFills(from, envelope);
  const RunId run = RunIdOf(envelope);
  if (!run.known() || run != outbox_.run()) {
    return outbox_.RefuseQuestion(from, envelope, Reason::Run, "it was restarted, or has not met this task");
  }
  outbox_.RefuseQuestion(
      from, envelope, Reason::Unregistered,
      fmt::format("it gave this task up, which it had not heard for {} s (failure.detect_s), or "
                  "another took its place{}",
                  config_.failure.detect_s, RowsOfGoneText(config_)));
}

std::string Registrar::WhoMayAsk(uint32_t key, const flatbuffers::String* token) const {
  if (key != 0) return "it answers who has the status key: name its directory by --keys";
  if (parts_.task.status_token.empty()) return "its run has no directory, so nobody has a token to ask it";
  const bool wrong = token != nullptr && token->size() > 0;
  return fmt::format("{}: --token {}, a file on its machine",
                     wrong ? "this is not the token of its run, which is made anew at each start"
                           : "it answers who has the token of its run",
                     std::filesystem::absolute(config_.run.dir + "/status.token").string());
}

// Takes as long for a wrong token as for a right one.
bool Registrar::IsToken(const flatbuffers::String* said) const {
  const std::string& token = parts_.task.status_token;
  if (token.empty() || said == nullptr || said->size() != token.size()) return false;
  unsigned char differs = 0;
  for (size_t i = 0; i < token.size(); ++i)
    differs |= static_cast<unsigned char>(token[i] ^ said->c_str()[i]);
  return differs == 0;
}

void Registrar::TellStatus(net::NodeId to, const wire::Envelope& question) {
  const std::string json = ledger_->StatusJson();
  outbox_.Send(to, question.request(),
               [&](auto& builder) { return wire::CreateStatus(builder, builder.CreateString(json)); });
}

// A member that has not got its Welcome yet names no run.
void Registrar::OnHeartbeat(Member& member, net::NodeId from, const wire::Envelope& envelope,
                            const wire::Heartbeat& beat) {
  members_.NoteBeat(member, beat);
  if (RunIdOf(envelope) != outbox_.run()) {
    return outbox_.RefuseQuestion(from, envelope, Reason::Run, "this is another run");
  }
  SendBeat(from, ledger_ == nullptr ? RunStatus() : ledger_->OnHeartbeat(member, beat));
}

void Registrar::SendBeat(net::NodeId to, const RunStatus& status) {
  outbox_.Send(to, 0, [&](auto& builder) {
    const auto checkpoint = status.newest.where.empty() ? 0 : builder.CreateString(status.newest.where);
    return wire::CreateHeartbeat(builder, builder.CreateString("serve"), parts_.shard.version(0),
                                 builder.CreateString(status.text), static_cast<uint32_t>(status.workers), 0,
                                 0, status.stop_signal, checkpoint,
                                 static_cast<uint64_t>(status.newest.step));
  });
}

void Registrar::Watch(TimePoint now) {
  refused_.Tick(now);
  for (Member* member : members_.Tick(now)) GiveUp(*member, members_.WhyOverdue(*member));
  if (!parts_.task.take_killed || leader_.fills()) return;
  for (const auto& [task, how] : parts_.task.take_killed()) {
    const bool ps = task.role == Role::kPs && ledger_ != nullptr && HasReplica(config_) && task.index > 0;
    if (task.role == Role::kPs && task.index == 0 && HasReplica(config_))
      leader_.LoseLeader(how + ", and nobody starts it again (failure.restarts)");
    Member* const member = ps                           ? &members_.At(task)
                           : task.role == Role::kWorker ? members_.Worker(task.index)
                                                        : nullptr;
    if (member == nullptr) continue;
    member->never_back = ps;
    if (member->here()) GiveUp(*member, fmt::format("{} {}", members_.NameOf(*member), how));
  }
}

void Registrar::GiveUp(Member& member, const std::string& why) {
  leader_.OnOverdue(member, why);
  Forget(member);
}

void Registrar::OnAbort(Member& member, const wire::Abort& abort, bool waits) {
  if (leader_.OnAbort(member, abort, waits)) Forget(member);
}

// The member has to say Hello again. When a ps is lost before the start, the workers must register again too:
// they are registered with the lost ps, but not with its successor. One that fills itself from its replica
// knows them.
void Registrar::Forget(Member& member) {
  if (ledger_ != nullptr) ledger_->Left(member);
  outbox_.DropLate(member.node);
  members_.Remove(member);
  parts_.rule.Lost(member);
  ForgetWorkersOf(member);
}

void Registrar::ForgetWorkersOf(const Member& ps) {
  if (ps.is_worker() || (ledger_ != nullptr && ledger_->ReplicaFor(ps) != 0)) return;
  for (Member& member : members_.all()) {
    if (!member.is_worker() || !member.here()) continue;
    outbox_.Refuse(member.node, 0, Reason::Unregistered, "a ps was lost before the run began");
    Forget(member);
  }
}

}  // namespace dtrain
