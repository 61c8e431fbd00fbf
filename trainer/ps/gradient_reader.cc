#include "trainer/ps/gradient_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "trainer/config/config.h"

namespace dtrain {
namespace {

constexpr char kOutOfOrder[] = "its places do not ascend within their groups";

}  // namespace

std::string GradientReader::Read(Member& member, uint64_t request, const wire::Push& push,
                                 net::Message* message) {
  if (std::string wrong = check_.WhyNot(member, push, net::Tensor(*message, push)); !wrong.empty())
    return wrong;
  if (!Decompress(member, push, message)) return kOutOfOrder;
  check_.CheckFinite(member, push, rule_.GradientOf(member, push, *message));
  return TakeRead(member, request, push, *message);
}

std::string GradientReader::ReadRecord(Member& member, const wire::Push& push, net::Message* message) {
  if (std::string wrong = check_.WhyMalformed(member, push, net::Tensor(*message, push)); !wrong.empty()) {
    return wrong;
  }
  if (!Decompress(member, push, message)) return kOutOfOrder;
  return TakeRead(member, push.record(), push, *message);
}

std::string GradientReader::TakeRead(Member& member, uint64_t request, const wire::Push& push,
                                     const net::Message& message) {
  std::string wrong = TakeKeys(member, request, push, net::Tensor(message, push), push.of());
  if (wrong.empty() && ++member.blocks_come == shard_.block_count()) member.blocks_come = 0;
  return wrong;
}

// Puts the float32 in the place of what came, and behind them the keys, as they are. False: that is
// malformed.
bool GradientReader::Decompress(const Member& member, const wire::Push& push, net::Message* message) {
  const auto form = static_cast<net::Compression>(push.form());
  if (form == net::Compression::kNone || push.examples() == 0) return true;
  const size_t rows = rule_.rows().KeysNamedBy(member.task.index, push)->size();
  const size_t bytes = shard_.bytes(push.block(), rows);
  RowDesk::Parts parts;
  RowDesk::Split(net::Tensor(*message, push), push.key_bytes(), &parts);
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

std::string GradientReader::TakeKeys(const Member& member, uint64_t request, int64_t block,
                                     net::TensorView keys, uint32_t count, bool keeps, uint64_t of) {
  const TableLayout* const table = shard_.table(block);
  if (table == nullptr) {
    return keys.size == 0
               ? ""
               : fmt::format("it has {} bytes of keys, and block {} is of no table", keys.size, block);
  }
  // Few bytes may name many rows: bounded are their answer, and their keys as they are kept here.
  const size_t bytes = std::max(shard_.bytes(block, count), count * table->key_bytes());
  if (bytes > static_cast<size_t>(config_.net.max_message_mb) << 20) {
    return fmt::format("it asks for {} rows, {} MiB, and net.max_message_mb = {}", count, bytes >> 20,
                       config_.net.max_message_mb);
  }
  return rule_.rows().Take(member.task.index, block, request, keys, count, keeps, of);
}

std::string GradientReader::TakeKeys(const Member& member, uint64_t request, const wire::Pull& pull,
                                     const net::Message& message) {
  return TakeKeys(member, request, pull.block(), net::Tensor(message, pull), pull.keys(), !pull.read());
}

std::string GradientReader::TakeKeys(const Member& member, uint64_t request, const wire::Push& push,
                                     net::TensorView payload, uint64_t of) {
  RowDesk::Parts parts;
  if (!RowDesk::Split(payload, push.key_bytes(), &parts)) {
    return fmt::format("its {} bytes are fewer than the {} of its keys", payload.size, push.key_bytes());
  }
  return TakeKeys(member, request, push.block(), parts.keys, push.keys(), true, of);
}

}  // namespace dtrain
