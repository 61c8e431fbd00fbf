#include "fuzz/script.h"

#include <malloc.h>
#include <time.h>

#include <atomic>

extern "C" size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace {

std::atomic<int64_t> g_passed{0};  // nanoseconds

// Each look at the clock takes this long, so that a loop that waits for a deadline ends.
constexpr int64_t kLook = 1000;

}  // namespace

// Takes the place of libstdc++'s: the clock moves when the script says so.
std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept {
  static const int64_t begin = [] {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
  }();
  return time_point(duration(begin + (g_passed += kLook)));
}

namespace dtrain::fuzz {
namespace {

// So many are enough to see what grows, and a run stays short.
constexpr int64_t kMaxDelivered = 3000;

// Bits of the second byte of a step, in pairs that must both be set.
bool Both(uint8_t flags, int pair) { return (flags >> 2 * pair & 3) == 3; }

}  // namespace

void PassTime(Clock::duration time) { g_passed += time.count(); }

int64_t HeapBytes() {
  if (__sanitizer_get_current_allocated_bytes != nullptr) {
    return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
  }
  return static_cast<int64_t>(mallinfo2().uordblks);
}

void ScriptChannel::Connect(net::NodeId id, const std::string&) {
  for (Peer& peer : peers) {
    if (peer.node != 0) continue;
    peer.node = id;
    return;
  }
}

net::SendResult ScriptChannel::Send(net::NodeId to, net::Message& message) {
  for (Peer& peer : peers) {
    if (peer.node != to) continue;
    const wire::Envelope* const envelope = net::Decode(message);
    Require(envelope != nullptr, "a task sends messages that can be read");
    if (on_tried) on_tried(peer, *envelope, message);
    if (peer.gone) return net::SendResult::kGone;
    if (peer.full) return net::SendResult::kFull;
    const net::Message sent = std::move(message);
    if (envelope->run_id() != 0) run = RunIdOf(*envelope);
    if (peer.answers && envelope->request() != 0) {
      peer.open.push_back(envelope->request());
      if (peer.open.size() > 64) peer.open.pop_front();
    }
    if (on_sent) on_sent(peer, *envelope);
    return net::SendResult::kSent;
  }
  return net::SendResult::kGone;
}

uint64_t ScriptChannel::NumberFor(Peer& peer, uint8_t flags) {
  if (Both(flags, 0)) return input_.Flag() ? peer.request : input_.Number();
  if (!peer.answers) return ++peer.request;
  if (peer.open.empty()) return 0;
  const uint64_t number = peer.open.front();
  peer.open.pop_front();
  return number;
}

net::Message ScriptChannel::Make(Peer& peer, uint8_t flags, Input& input, wire::Body kind) {
  net::Envelope envelope = run.Envelope(0);
  // What has no number in a run of its kind gets none.
  const bool numbered = kind != wire::Body::Hello && kind != wire::Body::Heartbeat &&
                        kind != wire::Body::Report && kind != wire::Body::Piece &&
                        kind != wire::Body::ReadPiece && kind != wire::Body::Order &&
                        kind != wire::Body::Welcome && kind != wire::Body::Abort;
  if (numbered || Both(flags, 0)) envelope.request = NumberFor(peer, flags);
  if (Both(flags, 1)) {
    envelope.run_id = input.Number();
    envelope.run_epoch = static_cast<uint32_t>(input.Number());
  }
  // A ps that answers must name some run.
  if (peer.answers && !run.known() && envelope.run_id == 0) envelope.run_id = 7;
  const size_t tensor_bytes = peer.tensor_bytes != 0 ? peer.tensor_bytes : tensor_bytes_;
  return MakeMessage(input, kind, envelope, tensor_bytes, config_, peer.as, ps);
}

void ScriptChannel::Hand(Peer& peer, net::Message made, net::NodeId* from, net::Message* message) {
  *from = peer.node;
  *message = std::move(made);
  ++delivered_;
  if (on_delivered) on_delivered(peer, *message);
}

void ScriptChannel::DeliverKind(size_t peer, wire::Body kind, const std::vector<uint8_t>& fields) {
  Input input(fields.data(), fields.size());
  Deliver(peer, Make(peers[peer], 0, input, kind));
}

net::ReceiveResult ScriptChannel::Receive(TimePoint deadline, net::NodeId* from, net::Message* message) {
  while (true) {
    if (!first_.empty()) {
      auto [peer, made] = std::move(first_.front());
      first_.pop_front();
      Hand(peers[peer], std::move(made), from, message);
      return net::ReceiveResult::kMessage;
    }
    if (repeats_ > 0) {
      --repeats_;
      Input none(nullptr, 0);
      Peer& peer = peers[repeated_peer_];
      Hand(peer, Make(peer, 0, none, repeated_kind_), from, message);
      return net::ReceiveResult::kMessage;
    }
    if (input_.empty() || delivered_ >= kMaxDelivered) throw ScriptEnd();
    const uint8_t step = input_.Byte();
    if (step < 24) {  // nothing comes
      if (deadline > Clock::now()) PassTime(deadline - Clock::now());
      if (step >= 16) PassTime(milliseconds(100) * input_.Byte());
      if (on_quiet) on_quiet();
      ++delivered_;
      return net::ReceiveResult::kTimeout;
    }
    Peer& peer = peers[step % peers.size()];
    if (step >= 248) {
      step % 2 == 0 ? peer.full = !peer.full : peer.gone = !peer.gone;
      somebody_was_full |= peer.full;
      continue;
    }
    if (peer.node == 0) continue;  // the task has not begun this conversation
    const uint8_t flags = input_.Byte();
    const wire::Body kind = peer.kinds[input_.Below(peer.kinds.size())];
    net::Message made = Make(peer, flags, input_, kind);
    if (Both(flags, 2)) made = Damaged(input_, made);
    if (Both(flags, 3)) {
      repeats_ = input_.Byte();
      repeated_peer_ = static_cast<size_t>(&peer - peers.data());
      repeated_kind_ = kind;
    }
    Hand(peer, std::move(made), from, message);
    return net::ReceiveResult::kMessage;
  }
}

}  // namespace dtrain::fuzz
