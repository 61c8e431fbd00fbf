// Channels: how tasks send each other messages of one or two frames, whatever the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace dtrain::net {

// The headers that a channel delivers are aligned to this, so that numbers in them can be read in place.
// Payloads have no alignment.
constexpr size_t kHeaderAlignment = 8;

// ReleaseFn: called exactly once, when the transport no longer reads the bytes. It runs on any thread and
// must not block. The type is libzmq's, so that lending allocates nothing beside the message.
using ReleaseFn = void (*)(void* data, void* context);

// LentBytes: bytes that belong to the sender and must not change until `release` has run. `release` may be
// null.
struct LentBytes {
  const void* data = nullptr;
  size_t size = 0;
  ReleaseFn release = nullptr;
  void* context = nullptr;
};

// TensorView: the bytes of a tensor in a received message. Valid as long as the message.
struct TensorView {
  const std::byte* data = nullptr;
  size_t size = 0;
};

// Frame: a run of bytes that a transport carries: owned, lent by its sender, or received. A lent frame is not
// copied: its bytes must not change until its release function has run, which may be on a thread of the
// transport. Thread: one at a time.
class Frame {
 public:
  Frame();  // empty
  ~Frame();
  Frame(Frame&& other) noexcept;
  Frame& operator=(Frame&& other) noexcept;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  static Frame Copy(const void* data, size_t size);  // owns the copy
  static Frame Lend(const void* data, size_t size, ReleaseFn release, void* context);
  // Returns a second handle to the same bytes; nothing is copied. The release function runs after the last
  // handle.
  Frame Share() const;

  const std::byte* data() const;
  size_t size() const;
  bool empty() const { return size() == 0; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data()), size()}; }

  // The transport's message object (zmq_msg_t); for implementations of Channel only.
  void* native() { return storage_; }
  const void* native() const { return storage_; }

 private:
  alignas(8) unsigned char storage_[64];
};

// Channel: sends and receives messages for one task. It knows its peers by NodeId and does not read what it
// carries: the receiver verifies each message (codec.h). Implementations: zmq_transport.h (a ROUTER where it
// binds, a DEALER for each connection), unix_transport.h (processes of one user on one machine) and
// inproc_transport.h (threads of one process). Wire format: docs/wire.md.
// Thread: one, or one at a time in Serve(); the release functions of lent frames run on any.

// NodeId: the name of a conversation. The connecting side chooses it at random, and both ends use it. Its
// bytes, big-endian, are the ZeroMQ routing id; the first one is never 0, because libzmq reserves such ids.
using NodeId = uint64_t;

// Returns a new random id.
NodeId NewNodeId();

struct Message {
  Frame header;   // a FlatBuffers envelope, see codec.h; not yet verified when received
  Frame payload;  // tensor bytes; empty when there are none or they are inside the header
  // When received: by which of the transport's listed keys the sender has proved who it is, its place in that
  // list from 1; 0: the connection has no keys.
  uint32_t key = 0;
};

enum class SendResult {
  kSent,  // handed to the transport
  kFull,  // the peer is not connected yet or has too much unread: retry after Receive()
  kGone,  // no such peer, or its connection is closed
};

enum class ReceiveResult { kMessage, kTimeout };

// ChannelStats: counts of a channel: bytes of headers and payloads, as in `--result`, and dropped frames.
struct ChannelStats {
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t frames_dropped = 0;  // malformed, hence not sent by a dtrain
};

// A transport may keep short messages until its owner has read what is there, so that they leave together: so
// many, of so many bytes at most, and only so soon after one was received: then the owner is sure to be back.
constexpr size_t kBatchMessages = 16;
constexpr size_t kShortBytes = 1024;
constexpr size_t kGatheredBytes = 64 << 10;
constexpr std::chrono::microseconds kAtOnce{20};

// The messages without a pause after which Serve() returns.
constexpr int kServedInARow = 256;

// MessageHandler: takes one message. False: Serve() is to return.
using MessageHandler = std::function<bool(NodeId from, Message& message)>;

class Channel {
 public:
  virtual ~Channel() = default;

  // Accepts connections at `address` ("host:port", "[::1]:port"; port 0 lets the system choose). Returns
  // the address bound. Throws UserError with address, errno text and remedy when that fails.
  virtual std::string Bind(const std::string& address) = 0;
  // Accepts connections on a socket that already listens. The channel takes ownership of the descriptor.
  virtual std::string BindDescriptor(int listening_fd) = 0;
  // Begins to connect. From now on `id` names this conversation at both ends. Never waits: the name is
  // resolved and the connection retried in the background until Disconnect() or the end of the channel.
  virtual void Connect(NodeId id, const std::string& address) = 0;
  // Ends a conversation made by Connect().
  virtual void Disconnect(NodeId id) = 0;

  // Hands `message` to `peer`'s queue; never waits. On kSent the message is taken; otherwise it stays the
  // caller's, unchanged. Lent bytes must not change until their release function has run.
  virtual SendResult Send(NodeId peer, Message& message) = 0;
  // Waits for a message from any peer, until `deadline`. A deadline in the past polls.
  virtual ReceiveResult Receive(TimePoint deadline, NodeId* from, Message* message) = 0;
  // Hands each message to `handler`, until `deadline`, or until `handler` returns false or throws, which this
  // throws too. Returns earlier after many messages without a pause. `handler` runs on this thread, or on
  // that of a sender in the same process (inproc_transport.h): on one at a time, each sees what the one
  // before has written, and none after Serve() has returned.
  // What the handler has sent is on its way then.
  virtual void Serve(TimePoint deadline, const MessageHandler& handler);

  // From now on messages of up to kGatheredBytes may wait until Serve() ends, or has nothing more to hand
  // over, so that those to one peer leave together and wake it once.
  virtual void Gather() {}

  virtual ChannelStats stats() const = 0;
  // Returns how often a conversation made by Connect() has been connected, as far as Receive() has noticed.
  // When the number grows beyond 1, messages in flight may have been lost. Receive() returns kTimeout early
  // at such a moment. Always 0 for other conversations and where connections never break.
  virtual uint64_t Connections(NodeId) const { return 0; }

  // Returns why a conversation made by Connect() is not connected, if a handshake told it: "it refuses this
  // task's key ..."; empty: no handshake has failed since the last good one.
  virtual std::string WhyNotConnected(NodeId) { return ""; }

  // Whether the sender of a message may act as this task ("worker 1"): `key`, the message's, is listed for
  // it. Always true where there are no keys.
  virtual bool MayActAs(uint32_t key, std::string_view task) const {
    return static_cast<void>(key), static_cast<void>(task), true;
  }

  // Says whether a conversation that a peer has made, together with its connection for heartbeats (id | 1),
  // is of a task of this run. Every other connection is a stranger's: a transport bounds what strangers hold.
  virtual void SetKnown(NodeId, bool known) { static_cast<void>(known); }

 protected:
  // Sends what was kept until now, at the end of Serve().
  virtual void Flush() {}
};

// Transport: makes channels of one kind. Owner: the command; it outlives its channels. Thread: any.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::unique_ptr<Channel> NewChannel() = 0;
};

}  // namespace dtrain::net
