#include "trainer/ps/replica_copy.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "trainer/config/config.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

constexpr char kNoWorker[] = "it names a worker that is not there";
// One record has at most so many bytes of the leader's state.
constexpr size_t kLeaderBytes = net::kMaxHeaderBytes / 2;
constexpr char kNoBlock[] = "it names a block that is not there";

flatbuffers::Offset<wire::TakenState> Encode(flatbuffers::FlatBufferBuilder& builder, const Member& member,
                                             const TakenOfProcess& taken) {
  return wire::CreateTakenState(builder, static_cast<uint32_t>(member.task.index), taken.incarnation,
                                taken.gradients, taken.blocks, taken.dropped);
}

TakenOfProcess Decode(const wire::TakenState& taken) {
  return {taken.incarnation(), taken.gradients(), taken.blocks(), taken.dropped()};
}

// Bounds a peer's number, so that sums with it do not overflow.
int64_t Count(uint64_t number) { return static_cast<int64_t>(number & kMaxSteps); }

}  // namespace

net::Message WorkerRecord(const PsState& state, const Member& member, bool forgets,
                          const net::Envelope& envelope, net::Encoder* encoder) {
  flatbuffers::FlatBufferBuilder& builder = encoder->Begin();
  const RuleOfWorker of_rule = state.rule.OfWorker(member.task.index);
  const auto process = builder.CreateString(member.process);
  const auto host = builder.CreateString(member.host);
  const auto taken = Encode(builder, member, member.of_process);
  std::vector<flatbuffers::Offset<wire::TakenState>> gone;
  for (const TakenOfProcess& of : member.gone) gone.push_back(Encode(builder, member, of));
  const auto gone_list = builder.CreateVector(gone);
  const auto clocks = builder.CreateVectorOfStructs(of_rule.clocks);
  const auto next_rounds = builder.CreateVector(of_rule.next_rounds);
  return encoder->Finish(
      envelope, wire::CreateReplicaWorker(builder, static_cast<uint32_t>(member.task.index), member.node,
                                          member.key, member.incarnation, process, host,
                                          static_cast<uint32_t>(member.at_once), member.first_request,
                                          member.settled, static_cast<uint64_t>(member.settled_blocks),
                                          static_cast<uint64_t>(member.taken), taken, gone_list, forgets,
                                          clocks, of_rule.together, next_rounds));
}

wire::ReplicaExchange ExchangeOf(const Member& member) {
  const TakenOfProcess& taken = member.of_process;
  return {member.settled,
          static_cast<uint64_t>(member.taken),
          taken.incarnation,
          taken.gradients,
          taken.blocks,
          static_cast<uint32_t>(member.task.index),
          static_cast<uint32_t>(member.settled_blocks),
          taken.dropped};
}

CopyItems::CopyItems(const PsState& state)
    : state_(state),
      leader_(state.leader == nullptr ? std::string() : state.leader->All()),
      first_worker_(static_cast<int64_t>((leader_.size() + kLeaderBytes - 1) / kLeaderBytes)),
      first_key_(first_worker_ + static_cast<int64_t>(state.config.cluster.worker.size())) {
  state.rule.rows().VisitKept([this](int worker, int64_t block, uint64_t request, const RowDesk::Keys& keys) {
    keys_.push_back({worker, block, request, keys});
  });
  first_unit_ = first_key_ + static_cast<int64_t>(keys_.size());
}

net::Message CopyItems::Make(int64_t item, const net::Envelope& envelope, net::Encoder* encoder) {
  if (item < first_worker_) {
    const std::string_view part =
        std::string_view(leader_).substr(static_cast<size_t>(item) * kLeaderBytes, kLeaderBytes);
    flatbuffers::FlatBufferBuilder& builder = encoder->Begin();
    const auto changes = builder.CreateVector(reinterpret_cast<const uint8_t*>(part.data()), part.size());
    return encoder->Finish(envelope, wire::CreateReplicaLeader(builder, changes, item + 1 < first_worker_));
  }
  if (item < first_key_) {
    return WorkerRecord(state_, *state_.members.Worker(item - first_worker_), false, envelope, encoder);
  }
  if (item < first_unit_) return MakeKeys(keys_[static_cast<size_t>(item - first_key_)], envelope, encoder);
  const int64_t unit = item - first_unit_;
  const net::LentBytes bytes = state_.shard.CopyUnit(unit);
  const uint64_t sum = state_.config.net.checksum ? net::PayloadChecksum(bytes.data, bytes.size) : 0;
  return encoder->Piece(envelope, 0, 0, static_cast<uint64_t>(unit), sum, bytes);
}

net::Message CopyItems::MakeKeys(const Keys& of, const net::Envelope& envelope, net::Encoder* encoder) {
  const net::LentBuffer& buffer = encoded_.Free(MaxKeyBytes(of.keys->size(), *state_.shard.table(of.block)));
  const size_t bytes =
      EncodeKeys(*of.keys, state_.shard.BlockRows(of.block), reinterpret_cast<std::byte*>(buffer.floats()));
  net::PullHead head;
  head.block = static_cast<uint32_t>(of.block);
  head.keys = static_cast<uint32_t>(of.keys->size());
  head.worker = static_cast<uint32_t>(of.worker);
  head.record = of.request;
  return encoder->Pull(envelope, head, buffer.Lend(0, bytes));
}

RecordReader::RecordReader(const PsState& state)
    : state_(state), gradients_(state.config, state.ps, state.shard, state.rule) {}

std::string RecordReader::Take(const wire::Envelope& envelope, net::Message* record) {
  switch (envelope.body_type()) {
    case wire::Body::Push:
      return TakePush(*envelope.body_as_Push(), record);
    case wire::Body::Pull:
      return TakeKeys(*envelope.body_as_Pull(), *record);
    case wire::Body::ReplicaRound:
      return TakeRound(*envelope.body_as_ReplicaRound(), *record);
    case wire::Body::ReplicaWorker:
      return TakeWorker(*envelope.body_as_ReplicaWorker());
    case wire::Body::ReplicaLeader:
      return TakeLeader(*envelope.body_as_ReplicaLeader());
    case wire::Body::Piece:
      return TakeUnit(*envelope.body_as_Piece(), *record);
    default:
      return fmt::format("a {} is no record", wire::EnumNameBody(envelope.body_type()));
  }
}

std::string RecordReader::TakePush(const wire::Push& push, net::Message* record) {
  Member* const member = state_.members.Worker(push.worker());
  if (member == nullptr) return kNoWorker;
  if (push.block() >= state_.shard.block_count()) return kNoBlock;
  std::string wrong = gradients_.ReadRecord(*member, push, record);
  if (!wrong.empty()) return wrong;
  member->settled = push.record();
  member->settled_blocks = member->blocks_come;
  state_.rule.OnPush(*member, push.record(), push, *record);
  return std::string();
}

std::string RecordReader::TakeKeys(const wire::Pull& pull, const net::Message& record) {
  Member* const member = state_.members.Worker(pull.worker());
  if (member == nullptr) return kNoWorker;
  if (pull.block() >= state_.shard.block_count()) return kNoBlock;
  return gradients_.TakeKeys(*member, pull.record(), pull, record);
}

std::string RecordReader::TakeRound(const wire::ReplicaRound& round, const net::Message& record) {
  Shard& shard = state_.shard;
  const auto block = static_cast<int64_t>(round.block());
  if (block >= shard.block_count()) return kNoBlock;
  const net::TensorView payload = net::Tensor(record, round);
  RoundSum sum;
  sum.factor = round.factor();
  if (round.what() == wire::RoundRecord::Sum) {
    RowDesk::Parts parts;
    if (!RowDesk::Split(payload, round.key_bytes(), &parts)) return "its keys have more bytes than it has";
    std::string wrong = DecodeKeys(parts.keys, round.keys(), shard.BlockRows(block), &keys_);
    if (!wrong.empty()) return wrong;
    sum.keys = keys_;
    const size_t bytes = shard.bytes(block, keys_.size());
    if (parts.values.size != bytes) {
      return fmt::format("block {} has {} bytes, and must have {}", block, parts.values.size, bytes);
    }
    static const std::byte kNothing{};
    sum.values = {bytes == 0 ? &kNothing : parts.values.data, bytes};
  }
  if (round.exchanges() != nullptr) {
    for (const wire::ReplicaExchange* exchange : *round.exchanges()) {
      Member* const member = state_.members.Worker(exchange->worker());
      if (member == nullptr) return kNoWorker;
      member->settled = exchange->request();
      member->settled_blocks = member->blocks_come = exchange->blocks_come();
      member->taken = Count(exchange->taken());
      member->of_process = {exchange->incarnation(), exchange->gradients(), exchange->blocks(),
                            exchange->dropped()};
    }
  }
  state_.rule.TakeRound(block, round.number(), round.what() == wire::RoundRecord::Answers ? nullptr : &sum);
  return std::string();
}

std::string RecordReader::TakeWorker(const wire::ReplicaWorker& worker) {
  Member* const member = state_.members.Worker(worker.worker());
  if (member == nullptr) return kNoWorker;
  const auto blocks = static_cast<uint64_t>(state_.shard.block_count());
  if (worker.blocks_come() >= blocks) return kNoBlock;
  state_.members.Restore(*member, worker.node());
  member->key = worker.key();
  member->incarnation = worker.incarnation();
  member->process = ShortText(worker.process()->str());
  member->host = ShortText(worker.host()->str());
  member->at_once = worker.at_once();
  member->first_request = worker.first_request();
  member->last_request = member->settled = worker.request();
  member->blocks_come = member->settled_blocks = static_cast<int64_t>(worker.blocks_come());
  member->taken = Count(worker.taken());
  if (worker.of_process() != nullptr) member->of_process = Decode(*worker.of_process());
  member->gone.clear();
  if (worker.gone() != nullptr) {
    for (const wire::TakenState* gone : *worker.gone()) member->gone.push_back(Decode(*gone));
  }
  if (worker.forgets()) state_.rule.rows().Forget(member->task.index);
  RuleOfWorker of_rule;
  of_rule.together = worker.together();
  if (worker.clocks() != nullptr) {
    for (const wire::ReplicaClock* clock : *worker.clocks()) of_rule.clocks.push_back(*clock);
  }
  if (worker.next_rounds() != nullptr) {
    of_rule.next_rounds.assign(worker.next_rounds()->begin(), worker.next_rounds()->end());
  }
  state_.rule.SetOfWorker(member->task.index, of_rule);
  return std::string();
}

std::string RecordReader::TakeLeader(const wire::ReplicaLeader& leader) {
  if (state_.leader == nullptr) return "it is of a leader, and this is no replica of ps 0";
  changes_.append(reinterpret_cast<const char*>(leader.changes()->data()), leader.changes()->size());
  if (leader.more()) return std::string();
  const bool sound = state_.leader->Take(changes_);
  changes_.clear();
  return sound ? std::string() : "it is of a state that cannot be";
}

std::string RecordReader::TakeUnit(const wire::Piece& unit, const net::Message& record) {
  if (unit.piece() >= static_cast<uint64_t>(state_.shard.unit_count()))
    return "it is of a unit that is not there";
  const net::TensorView bytes = net::Tensor(record, unit);
  const uint64_t sum = unit.checksum();
  if (sum != 0 && sum != net::PayloadChecksum(bytes.data, bytes.size)) {
    return "its bytes do not have the checksum that it names (net.checksum)";
  }
  return state_.shard.PutUnit(static_cast<int64_t>(unit.piece()), bytes);
}

uint64_t ChecksumOf(const net::LentBytes& unit) {
  const uint64_t sum = net::PayloadChecksum(unit.data, unit.size);
  if (unit.release != nullptr) unit.release(const_cast<void*>(unit.data), unit.context);
  return sum;
}

}  // namespace dtrain
