#include "trainer/ps/replica_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/fault_point.h"
#include "trainer/config/config.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/this_host.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

// How soon a holder is asked again that is not in the run yet.
constexpr milliseconds kAgain{20};
constexpr milliseconds kReportEvery{1000};
constexpr milliseconds kReportBrokenEvery{100};
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

}  // namespace

std::string KernelsText() {
#if defined(__x86_64__)
  return fmt::format("dtrain {} on x86-64", kVersion);
#else
  return fmt::format("dtrain {} on aarch64", kVersion);
#endif
}

ReplicaLink::ReplicaLink(const Parts& parts)
    : parts_(parts),
      config_(parts.task.config),
      log_(parts.task.log),
      in_turns_(parts.task.self.index == 0),
      gate_(in_turns_) {
  if (in_turns_) parts_.state.leader = &leader_state_;
}

void ReplicaLink::Close() {
  if (!conversation_) return;
  parts_.task.channel.Disconnect(conversation_->node());
  conversation_.reset();
  sent_.clear();
  recording_ = false;
  again_ = TimePoint();
  leader_state_.Clear();
  changes_.clear();
  units_.reset();
  bytes_ = unit_bytes_ = 0;
}

net::Envelope ReplicaLink::NextEnvelope() {
  return parts_.outbox.run().Envelope(conversation_->NextRequest());
}

void ReplicaLink::Send(const net::Envelope& envelope, net::Message record, uint64_t round, bool is_unit) {
  const size_t bytes = record.header.size() + record.payload.size();
  sent_.push_back({envelope.request, bytes, round, is_unit});
  bytes_ += bytes;
  if (is_unit) unit_bytes_ += bytes;
  last_ = envelope.request;
  if (gate_.answers_wait() && !in_turns_) parts_.outbox.WaitForRecord(last_ + (expects_ ? 1 : 0));
  conversation_->Send(envelope.request, std::move(record));
}

// Opens a replica, or the way to the one that this ps fills itself from.
void ReplicaLink::Open(bool fetches) {
  Close();
  const TaskId holder{Role::kPs, (parts_.task.self.index + 1) % static_cast<int>(config_.cluster.ps.size())};
  conversation_ = std::make_unique<Conversation>(parts_.task.channel, config_.cluster, holder, kMaxRecords);
  heard_ = begun_ = Clock::now();
  last_ = turn_ = 0;
  gate_.answers_wait() ? parts_.outbox.WaitForLater() : ReleaseAll();
  const net::Envelope envelope = NextEnvelope();
  flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
  const auto kernels = builder.CreateString(KernelsText());
  const auto process = builder.CreateString(ProcessText());
  const Shard& shard = parts_.state.shard;
  const auto earlier = static_cast<uint64_t>(shard.earlier_updates());
  const auto decay = static_cast<uint64_t>(shard.decay_steps());
  const FaultScope fault("replica.open");
  Send(envelope,
       encoder_.Finish(envelope, wire::CreateReplicaOpen(
                                     builder, static_cast<uint32_t>(parts_.task.self.index), gate_.epoch(),
                                     kernels, process, fetches, earlier, decay, incarnation_)));
}

// What has waited for a replica that does not count.
void ReplicaLink::ReleaseAll() {
  parts_.outbox.WaitForRecord(0);
  parts_.outbox.Release(kNever);
  parts_.outbox.Release(0);
}

void ReplicaLink::WaitForLast() {
  in_turns_ ? parts_.outbox.WaitForLater() : parts_.outbox.WaitForRecord(last_);
}

void ReplicaLink::OnEpoch(uint64_t epoch) {
  if (!gate_.OnEpoch(epoch)) return;
  tells_ = true;
  Open(/*fetches=*/false);
}

// The holder is there, and knows this ps. The tables of workers go at once, so that later records find them;
// the units one by one.
void ReplicaLink::BeginCopy() {
  recording_ = true;
  units_.emplace(parts_.state);
  for (next_item_ = units_->first_worker(); next_item_ < units_->first_unit(); ++next_item_) {
    const net::Envelope envelope = NextEnvelope();
    Send(envelope, units_->Make(next_item_, envelope, &encoder_));
  }
  SendUnits();
}

// One unit in a turn of the loop: no step waits longer.
void ReplicaLink::SendUnits() {
  if (!busy()) return;
  const FaultScope fault("replica.unit");
  const net::Envelope envelope = NextEnvelope();
  Send(envelope, units_->Make(next_item_++, envelope, &encoder_), 0, /*is_unit=*/true);
  if (next_item_ < units_->size()) return;
  last_unit_ = last_;
  gate_.BeginWait();
  WaitForLast();
}

void ReplicaLink::Fetch(uint64_t epoch) {
  if (fetching_) return;
  fetching_ = true;
  gate_.GoOn(epoch);
  Open(/*fetches=*/true);
}

void ReplicaLink::OnMessage(net::Message& message) {
  const wire::Envelope* const envelope = net::Decode(message);
  if (envelope == nullptr || RunIdOf(*envelope) != parts_.outbox.run()) return;
  heard_ = Clock::now();
  if (const wire::ReplicaAck* const ack = envelope->body_as_ReplicaAck())
    return OnAck(envelope->request(), *ack);
  if (const wire::Refuse* const refuse = envelope->body_as_Refuse()) {
    if (refuse->reason() == wire::Reason::NotReady) {
      if (again_ == TimePoint()) again_ = heard_ + kAgain;
      return;
    }
    const std::string why =
        fmt::format("{} refuses it: {}", conversation_->name(), ShortText(refuse->text()->str()));
    if (refuse->reason() == wire::Reason::Duplicate) throw PeerLost("{}", why);
    if (refuse->reason() == wire::Reason::Config)
      throw UserError("the replica of this ps (failure.replicas): {}", why);
    return Break(why);
  }
  if (fetching()) OnItem(*envelope, message);
}

void ReplicaLink::OnAck(uint64_t number, const wire::ReplicaAck& ack) {
  while (!sent_.empty() && sent_.front().number <= number) {
    if (!conversation_->Answered(sent_.front().number)) break;
    bytes_ -= sent_.front().bytes;
    if (sent_.front().is_unit) unit_bytes_ -= sent_.front().bytes;
    sent_.pop_front();
  }
  if (fetching()) {
    if (items_) return;  // its first message came twice, since the way to the holder is slow
    items_ = static_cast<int64_t>(std::min<uint64_t>(ack.items(), kMaxSteps));
    Shard& shard = parts_.state.shard;
    shard.SetCounts(static_cast<int64_t>(ack.earlier_updates() & kMaxSteps),
                    static_cast<int64_t>(ack.decay_steps() & kMaxSteps));
    shard.BeginCopy();
    reader_ = std::make_unique<RecordReader>(parts_.state);
    return AskForItems(Clock::now());
  }
  if (!recording_) {
    gate_.SetOpened();
    ReleaseAll();
    return BeginCopy();
  }
  if (gate_.answers_wait()) parts_.outbox.Release(number);
  if (units_ && next_item_ == units_->size() && number >= last_unit_) {
    units_.reset();
    gate_.SetFilled();
    tells_ = true;
    log_.Info("{} has a replica of this ps, {:.2f} s after it was begun", conversation_->name(),
              SecondsSince(begun_));
  }
}

// Items come in order over one connection; what was lost with it is asked for again. Over a slow link one
// item may take long, and each that is asked for twice comes twice: so only where the connection is another
// one, or nothing has come for half of the time after which the holder is given up.
void ReplicaLink::AskForItems(TimePoint now) {
  connections_ = parts_.task.channel.Connections(conversation_->node());
  ask_again_ = now + milliseconds(static_cast<int64_t>(500 * config_.failure.detect_s));
  for (; asked_ < std::min(*items_, next_item_ + kOpenItems); ++asked_) {
    conversation_->Tell(parts_.outbox.run(), [&](auto& builder) {
      return wire::CreateReplicaRead(builder, static_cast<uint64_t>(asked_));
    });
  }
}

void ReplicaLink::OnItem(const wire::Envelope& envelope, net::Message& message) {
  if (!items_ || envelope.request() != static_cast<uint64_t>(next_item_) + 1) return;
  const FaultScope fault("replica.item");
  const std::string wrong = reader_->Take(envelope, &message);
  if (!wrong.empty())
    return Break(fmt::format("item {} of {}: {}", next_item_, conversation_->name(), wrong));
  ++next_item_;
  if (next_item_ < *items_) return AskForItems(Clock::now());
  fetched_ = recording_ = true;
  turn_ = last_;
  reader_.reset();
  parts_.outbox.Release(last_);
  next_item_ = 0;
  log_.Info("this ps has filled itself from its replica on {} in {:.2f} s", conversation_->name(),
            SecondsSince(begun_));
}

// From now on nobody is answered until ps 0 names another epoch.
void ReplicaLink::Break(const std::string& why) {
  log_.Warning("the replica of this ps does not count: {}", why);
  Close();
  gate_.SetBroken();
  if (gate_.answers_wait()) parts_.outbox.WaitForRecord(kNever);
  const TimePoint now = Clock::now();
  next_report_ = std::max(now, broken_ + kReportEvery);  // a holder that refuses each epoch costs little
  broken_ = now;
  tells_ = false;
}

std::optional<ReplicaLink::Report> ReplicaLink::TakeReport(TimePoint now) {
  if (gate_.epoch() == 0 || (fetching() && gate_.records())) return std::nullopt;
  if (!tells_ && now < next_report_) return std::nullopt;
  tells_ = false;
  next_report_ = now + (gate_.records() ? kReportEvery : kReportBrokenEvery);
  return Report{gate_.epoch(), gate_.phase(), sent_.size()};
}

void ReplicaLink::Tick(TimePoint now) {
  if (!conversation_) return;
  if (sent_.empty() && !fetching()) heard_ = now;
  if (SecondsBetween(heard_, now) > config_.failure.detect_s) {
    return Break(fmt::format("{} has not answered for {:.1f} s (failure.detect_s = {})",
                             conversation_->name(), SecondsBetween(heard_, now), config_.failure.detect_s));
  }
  // The holder that is there now may not be the one that has opened it.
  if (!recording_ && !fetching() && parts_.task.channel.Connections(conversation_->node()) > 1) {
    return Break(fmt::format("the connection to {} broke while it was opened", conversation_->name()));
  }
  conversation_->OnQuiet(now);
  if (again_ != TimePoint() && now >= again_) {
    again_ = TimePoint();
    conversation_->SendAgain();
  }
  const bool another = parts_.task.channel.Connections(conversation_->node()) != connections_;
  if (items_ && fetching() && (another || now >= ask_again_)) {
    asked_ = next_item_;
    AskForItems(now);
  }
  SendUnits();
  Check(now);
}

// The next unit, as it is at this place among the records.
void ReplicaLink::Check(TimePoint now) {
  const int64_t a_minute = config_.failure.replica_check;
  if (gate_.phase() != wire::ReplicaPhase::Filled || fetching() || a_minute == 0 || now < next_check_) return;
  const bool first = next_check_ == TimePoint();
  next_check_ = now + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(60.0 / static_cast<double>(a_minute)));
  if (first) return;
  Shard& shard = parts_.state.shard;
  next_checked_ = next_checked_ < shard.unit_count() ? next_checked_ : 0;
  const uint64_t sum = ChecksumOf(shard.CopyUnit(next_checked_));
  const net::Envelope envelope = NextEnvelope();
  Send(envelope,
       encoder_.Finish(envelope, wire::CreateReplicaCheck(encoder_.Begin(),
                                                          static_cast<uint64_t>(next_checked_++), sum)));
}

void ReplicaLink::Push(const Member& member, uint64_t request, const wire::Push& push, net::Frame payload,
                       net::TensorView values) {
  if (!records()) return;
  const FaultScope fault("replica.push");
  const net::Envelope envelope = NextEnvelope();
  const net::PushedRows rows{push.of(), push.keys(), push.key_bytes()};
  const bool in_header = payload.empty();
  net::Message record = encoder_.Push(envelope, push.block(), push.examples(), 0,
                                      in_header ? net::LentBytes{values.data, values.size} : net::LentBytes{},
                                      push.version(), {}, rows, static_cast<net::Compression>(push.form()),
                                      push.empty(), {static_cast<uint32_t>(member.task.index), request});
  if (!in_header) record.payload = std::move(payload);
  Send(envelope, std::move(record));
}

void ReplicaLink::Keys(const Member& member, uint64_t request, int64_t block, uint32_t count,
                       net::TensorView keys) {
  if (!records() || parts_.state.shard.table(block) == nullptr) return;
  net::PullHead head;
  head.block = static_cast<uint32_t>(block);
  head.keys = count;
  head.worker = static_cast<uint32_t>(member.task.index);
  head.record = request;
  const net::Envelope envelope = NextEnvelope();
  // A copy: the payload may have a gradient in front of the keys.
  net::Message record = encoder_.Pull(envelope, head, {});
  record.payload = net::Frame::Copy(keys.data, keys.size);
  Send(envelope, std::move(record));
}

void ReplicaLink::Round(int64_t block, uint64_t number, bool applies, RoundSum sum,
                        const std::vector<const Member*>& exchanges) {
  if (!records()) return;
  const FaultScope fault("replica.round");
  const net::Envelope envelope = NextEnvelope();
  net::RoundHead head;
  head.block = static_cast<uint32_t>(block);
  head.number = number;
  head.factor = sum.factor;
  head.what = !applies                     ? wire::RoundRecord::Answers
              : sum.values.data == nullptr ? wire::RoundRecord::Version
                                           : wire::RoundRecord::Sum;
  for (const Member* member : exchanges) head.exchanges.push_back(ExchangeOf(*member));
  if (sum.keys.size == 0) return Send(envelope, encoder_.Round(envelope, head, sum.values), number);
  // The sum of rows and behind it their keys, in one frame.
  head.keys = static_cast<uint32_t>(sum.keys.size);
  std::vector<std::byte> packed(sum.values.size + MaxKeyBytes(head.keys, *parts_.state.shard.table(block)));
  std::copy_n(static_cast<const std::byte*>(sum.values.data), sum.values.size, packed.data());
  head.key_bytes = static_cast<uint32_t>(
      EncodeKeys(sum.keys, parts_.state.shard.BlockRows(block), packed.data() + sum.values.size));
  if (sum.values.release != nullptr)
    sum.values.release(const_cast<void*>(sum.values.data), sum.values.context);
  net::Message record = encoder_.Round(envelope, head, {});
  record.payload = net::Frame::Copy(packed.data(), sum.values.size + head.key_bytes);
  Send(envelope, std::move(record), number);
}

void ReplicaLink::Worker(const Member& member, bool forgets) {
  if (!records()) return;
  const net::Envelope envelope = NextEnvelope();
  Send(envelope, WorkerRecord(parts_.state, member, forgets, envelope, &encoder_));
}

void ReplicaLink::EndTurn() {
  if (!records()) return;
  constexpr size_t kMaxChanges = net::kMaxHeaderBytes / 2;
  for (size_t at = 0; turn_ != last_ || at < changes_.size();) {
    const FaultScope fault("replica.turn");
    const size_t bytes = std::min(kMaxChanges, changes_.size() - at);
    const net::Envelope envelope = NextEnvelope();
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    const auto changes = builder.CreateVector(reinterpret_cast<const uint8_t*>(changes_.data()) + at, bytes);
    at += bytes;
    Send(envelope,
         encoder_.Finish(envelope, wire::CreateReplicaLeader(builder, changes, at < changes_.size())));
    if (at == changes_.size()) turn_ = last_;
  }
  changes_.clear();
  if (!gate_.answers_wait()) return;
  parts_.outbox.WaitForRecord(last_);
  parts_.outbox.WaitForLater();
}

void ReplicaLink::GiveUp() {
  Close();
  gate_.GiveUp();
  ReleaseAll();
}

void ReplicaLink::ExpectRecord() {
  if (in_turns_) return;
  expects_ = true;
  if (records() && gate_.answers_wait()) parts_.outbox.WaitForRecord(last_ + 1);
}

void ReplicaLink::Recorded() {
  expects_ = false;
  if (!in_turns_ && records() && gate_.answers_wait()) parts_.outbox.WaitForRecord(last_);
}

uint64_t ReplicaLink::oldest_round() const {
  uint64_t oldest = parts_.state.rule.NextRound();
  for (const Sent& sent : sent_) {
    if (sent.round != 0) oldest = std::min(oldest, sent.round);
  }
  return oldest;
}

}  // namespace dtrain
