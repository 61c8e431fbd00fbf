#include "trainer/ps/ps_server.h"
#include "trainer/config/config.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "trainer/peer/conversation.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/shard/shard.h"

namespace dtrain {
namespace {

using wire::Body;
using wire::Reason;

// How soon to try again to send weights that a full queue did not take.
constexpr milliseconds kLateTick{1};
// How soon to look again at a checkpoint that is being written here, and to go on with a report.
constexpr milliseconds kSavingTick{5};
// How long to work on the report on the final weights before the next messages.
constexpr milliseconds kReportTurn{5};
constexpr char kOtherKey[] = "it has the key of another task";
constexpr char kNoMessage[] = "it is not a message of dtrain";
constexpr char kNotInitialised[] = "a pull before the initial values";
constexpr char kBadKeys[] = "it asks for rows that are not here";
constexpr char kNoSuchBlock[] = "it asks for a block that is not here";

}  // namespace

PsServer::PsServer(const PsTask& task, const MakeLeader& make_leader, RunHistory& history)
    : task_(task),
      config_(task.config),
      channel_(task.channel),
      log_(task.log),
      shard_(MakeParts(config_, task.layout, task.self.index, task.store)),
      members_(config_, task.self, shard_.block_count()),
      outbox_(channel_, MaxOpenRequests(MaxOpenBlocks(config_.train, shard_.block_count()))),
      activity_(task.stop),
      rule_(MakeUpdateRule({config_, shard_, members_, outbox_})),
      snapshots_({config_, shard_, *rule_, outbox_, task.layout, task.self.index, log_}),
      filler_({config_, task.layout, task.self.index, shard_, log_,
               [this] { return leader_->SeesDirectory(); },
               [this](uint64_t number, Piece piece) { leader_->AskForPiece(number, piece); },
               [this](const FillOutcome& outcome) { leader_->OnFilled(outcome); }}),
      check_(config_, task.self, task.layout, shard_, *rule_),
      tick_(std::min<milliseconds>(Heartbeat::Interval(config_.failure.detect_s), milliseconds(50))),
      dropped_(log_, "dropped frames"),
      dropped_of_strangers_(log_, "dropped frames of strangers") {
  members_.set_on_known([this](net::NodeId node, bool known) { channel_.SetKnown(node, known); });
  leader_ = make_leader({task_, history, activity_, members_, outbox_, *rule_, snapshots_, filler_,
                         [this] { return Report(); }});
  ledger_ = leader_->ledger();
  leader_node_ = leader_->node();
  rule_->set_leader(*leader_);
  snapshots_.set_leader(*leader_);
  outbox_.set_run(leader_->run());
  registrar_.emplace(Registrar::Parts{task_, shard_, *rule_, members_, outbox_, *leader_,
                                      FeedsOthers(config_) ? history.feed_token : 0});
}

TimePoint PsServer::NextTick(TimePoint now) const {
  if (filler_.busy()) return now;
  if (outbox_.late()) return now + kLateTick;
  return now + (leader_->busy() || snapshots_.writing() ? std::min(tick_, kSavingTick) : tick_);
}

RunSummary PsServer::Run() {
  const auto handle = [this](net::NodeId from, net::Message& message) {
    Handle(from, message);
    snapshots_.AfterMessage();
    return !filler_.busy();  // every task waits for the values
  };
  TimePoint now = Clock::now();
  while (!leader_->Finished(now)) {
    activity_.Turn();
    Tick(now);
    if (outbox_.late()) SendLate();
    filler_.Turn(now);
    channel_.Serve(NextTick(now), handle);
    snapshots_.AfterMessage();
    now = Clock::now();
  }
  return leader_->Summary();
}

void PsServer::Tick(TimePoint now) {
  if (shard_.block_count() > 0) activity_.global_step = static_cast<int64_t>(shard_.version(0));
  const net::ChannelStats stats = channel_.stats();
  activity_.Tell({stats.bytes_sent, stats.bytes_received, rule_->bytes_saved()});
  leader_->Tick(now);
  outbox_.set_run(leader_->run());
  snapshots_.Tick();
  registrar_->Watch(now);
  dropped_.Tick(now);
  dropped_of_strangers_.Tick(now);
  rule_->Tick();
}

void PsServer::SendLate() {
  outbox_.SendLate();
  const net::NodeId overfull = outbox_.TakeOverfull();
  if (const Member* const member = overfull == 0 ? nullptr : members_.Find(overfull)) {
    dropped_.Warn(overfull, "it reads too little",
                  members_.NameOf(*member) +
                      " asks for more weights than it reads; answers that it has no room for are dropped");
  }
}

void PsServer::DropFrame(net::NodeId from, const char* why) {
  const Member* const member = members_.Find(from);
  PeerLog& log = member == nullptr ? dropped_of_strangers_ : dropped_;
  log.Warn(
      from, why,
      fmt::format("dropped a frame from {}: {}",
                  member == nullptr ? fmt::format("peer {:016x}", from) : members_.NameOf(*member), why));
}

void PsServer::Handle(net::NodeId from, net::Message& message) {
  const bool of_leader = from == leader_node_ && from != 0;
  Member* const member = of_leader ? nullptr : members_.Find(from);
  if (!of_leader && member == nullptr) return HandleStranger(from, message);
  if (!of_leader && member->key != message.key) return DropFrame(from, kOtherKey);
  const wire::Envelope* envelope = net::Decode(message);
  if (envelope == nullptr) return DropFrame(from, kNoMessage);
  if (of_leader) return leader_->OnMessage(*envelope, message);
  if (const auto* hello = envelope->body_as_Hello()) return OnHello(from, message.key, *envelope, *hello);
  member->heard = true;
  if (const auto* beat = envelope->body_as_Heartbeat()) {
    return registrar_->OnHeartbeat(*member, from, *envelope, *beat);
  }
  if (RunIdOf(*envelope) != outbox_.run()) {
    return outbox_.RefuseQuestion(from, *envelope, Reason::Run, "this is another run");
  }
  HandleMember(*member, *envelope, message);
}

// What strangers have used up their time for is dropped unread; a newcomer says Hello again.
void PsServer::HandleStranger(net::NodeId from, const net::Message& message) {
  const TimePoint begun = Clock::now();
  if (!strangers_.Allows(begun)) return;
  const wire::Envelope* const envelope = net::Decode(message);
  if (envelope == nullptr) {
    DropFrame(from, kNoMessage);
  } else if (const auto* hello = envelope->body_as_Hello()) {
    OnHello(from, message.key, *envelope, *hello);
  } else {
    registrar_->RefuseStranger(from, message.key, *envelope);
  }
  strangers_.Used(Clock::now() - begun);
}

void PsServer::OnHello(net::NodeId from, uint32_t key, const wire::Envelope& envelope,
                       const wire::Hello& hello) {
  if (from & 1) return DropFrame(from, "it says Hello from a connection for heartbeats");
  registrar_->OnHello(from, key, envelope, hello);
}

// Requests are taken in the order of their numbers. A gap means that one was lost; its sender repeats it.
bool PsServer::TakeRequest(Member& member, uint64_t request, bool* repeated) {
  *repeated = request <= member.last_request;
  if (*repeated) return true;
  const uint64_t next = member.last_request == 0 ? member.first_request : member.last_request + 1;
  if (request != next && next != 0) return false;
  member.last_request = request;
  member.GrantOf(request) = 0;
  return true;
}

void PsServer::HandleMember(Member& member, const wire::Envelope& envelope, net::Message& message) {
  if (!member.is_worker() && ledger_ != nullptr && ledger_->OnNotice(member, envelope, message)) return;
  const uint64_t request = envelope.request();
  bool repeated = false;
  if (!TakeRequest(member, request, &repeated)) return;
  if (const auto* abort = envelope.body_as_Abort()) return registrar_->OnAbort(member, *abort, request != 0);
  const bool tensor = envelope.body_type() == Body::Push || envelope.body_type() == Body::Pull;
  if (tensor && !member.is_worker()) return DropFrame(member.node, "only workers exchange tensors");
  switch (envelope.body_type()) {
    case Body::Push:
      if (repeated) return OnRepeated(member, request, *envelope.body_as_Push(), message);
      return OnPush(member, request, *envelope.body_as_Push(), message);
    case Body::Pull:
      return OnPull(member, request, repeated, *envelope.body_as_Pull(), message);
    case Body::Done:
      if (!repeated) rule_->Left(member);
      break;
    default:
      break;
  }
  if (leader_->OnRequest(member, envelope, repeated)) return;
  DropFrame(member.node, "its kind is not for this ps");
}

void PsServer::OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) {
  std::string wrong = check_.WhyNot(member, push, net::Tensor(message, push));
  if (wrong.empty() && !Decompress(member, push, &message)) {
    wrong = "its places do not ascend within their groups";
  }
  const net::TensorView payload = net::Tensor(message, push);
  if (wrong.empty()) check_.CheckFinite(member, push, payload);
  if (wrong.empty()) wrong = TakeKeys(member, request, push, payload, push.of());
  if (!wrong.empty()) {
    return RefuseRequest(member, request, "a gradient", wrong);
  }
  if (++member.blocks_come == shard_.block_count()) member.blocks_come = 0;
  rule_->OnPush(member, request, push, message);
}

// Puts the float32 in the place of what came, and behind them the keys, as they are. False: that is
// malformed.
bool PsServer::Decompress(const Member& member, const wire::Push& push, net::Message* message) {
  const auto form = static_cast<net::Compression>(push.form());
  if (form == net::Compression::kNone) return true;
  RowDesk::Parts parts{net::Tensor(*message, push), {}};
  size_t bytes = shard_.bytes(push.block());
  if (const TableLayout* const table = shard_.table(push.block())) {
    RowDesk::Split(parts.values, push.key_bytes(), &parts);
    bytes = rule_->rows().KeysNamedBy(member.task.index, push)->size() * static_cast<size_t>(table->width()) *
            sizeof(float);
  }
  const net::LentBuffer& values = decompressed_.Free(bytes + parts.keys.size);
  if (!net::Decompress(form, parts.values.data, parts.values.size,
                       static_cast<int64_t>(bytes / sizeof(float)), values.floats())) {
    return false;
  }
  if (parts.keys.size > 0) {
    std::memcpy(reinterpret_cast<std::byte*>(values.floats()) + bytes, parts.keys.data, parts.keys.size);
  }
  const net::LentBytes lent = values.Lend(0, bytes + parts.keys.size);
  message->payload = net::Frame::Lend(lent.data, lent.size, lent.release, lent.context);
  return true;
}

// The number is not taken: a repeat is judged anew, and requests after it wait.
void PsServer::RefuseRequest(Member& member, uint64_t request, const char* what, const std::string& why) {
  log_.Error("{} of {} is refused: {}", what, members_.NameOf(member), why);
  member.last_request = request - 1;
  outbox_.Refuse(member.node, request, Reason::BadRequest, why);
}

// Takes the rows of a table that a message asks for. Returns what is wrong with them; empty: nothing.
std::string PsServer::TakeKeys(const Member& member, uint64_t request, int64_t block, net::TensorView keys,
                               uint32_t count, bool keeps, uint64_t of) {
  const TableLayout* const table = shard_.table(block);
  if (table == nullptr) return std::string();
  // Few bytes may name many rows: bounded are their answer, and their keys as they are kept here.
  const size_t bytes =
      count * std::max(static_cast<size_t>(table->width()) * sizeof(float), table->key_bytes());
  if (bytes > static_cast<size_t>(config_.net.max_message_mb) << 20) {
    return fmt::format("it asks for {} rows, {} MiB, and net.max_message_mb = {}", count, bytes >> 20,
                       config_.net.max_message_mb);
  }
  return rule_->rows().Take(member.task.index, block, request, keys, count, keeps, of);
}

std::string PsServer::TakeKeys(const Member& member, uint64_t request, const wire::Push& push,
                               net::TensorView payload, uint64_t of) {
  if (shard_.table(push.block()) == nullptr) return std::string();
  RowDesk::Parts parts;
  if (!RowDesk::Split(payload, push.key_bytes(), &parts)) {
    return fmt::format("its {} bytes are fewer than the {} of its keys", payload.size, push.key_bytes());
  }
  return TakeKeys(member, request, push.block(), parts.keys, push.keys(), true, of);
}

void PsServer::OnPull(Member& member, uint64_t request, bool repeated, const wire::Pull& pull,
                      const net::Message& message) {
  if (!shard_.initialised()) return DropFrame(member.node, kNotInitialised);
  if (pull.block() >= shard_.block_count()) return DropFrame(member.node, kNoSuchBlock);
  if (!repeated && (member.blocks_come != 0 || rule_->Waits(member, pull.block()))) {
    return DropFrame(member.node, "a pull before its gradient was answered");
  }
  const std::string wrong =
      TakeKeys(member, request, pull.block(), net::Tensor(message, pull), pull.keys(), !pull.read());
  if (!wrong.empty()) {
    return repeated ? DropFrame(member.node, kBadKeys) : RefuseRequest(member, request, "a pull", wrong);
  }
  if (pull.snapshot() != 0) return snapshots_.OnPull(member, request, pull);
  repeated ? rule_->OnRepeatedPull(member, request, pull) : rule_->OnPull(member, request, pull);
}

void PsServer::OnRepeated(Member& member, uint64_t request, const wire::Push& push,
                          const net::Message& message) {
  if (!shard_.initialised()) return DropFrame(member.node, kNotInitialised);
  if (push.block() >= shard_.block_count()) return DropFrame(member.node, kNoSuchBlock);
  const std::string wrong = TakeKeys(member, request, push, net::Tensor(message, push));
  if (!wrong.empty()) return DropFrame(member.node, kBadKeys);
  rule_->OnRepeated(member, request, push.block());
}

// Between the parts of a large table's report the ps answers and tells that it is alive.
std::optional<ShardReport> PsServer::Report() {
  if (!shard_.initialised()) return std::nullopt;
  std::optional<ShardReport> report = shard_.Report(Clock::now() + kReportTurn);
  if (!report) return std::nullopt;
  const net::ChannelStats stats = channel_.stats();
  report->bytes_sent = static_cast<int64_t>(stats.bytes_sent);
  report->bytes_received = static_cast<int64_t>(stats.bytes_received);
  report->bytes_saved = static_cast<int64_t>(rule_->bytes_saved());
  return report;
}

}  // namespace dtrain
