// Channels: how tasks send each other messages of one or two frames, whatever the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace dtrain::net {

// Headers that a channel hands out start at a multiple of this, so that numbers in them can be read in place.
// Payloads are wherever they happened to arrive, or where their lender put them.
constexpr size_t kHeaderAlignment = 8;

// Runs exactly once, when the transport no longer reads the bytes; on any thread, so it must not block.
// libzmq's own kind of function, so that lending allocates nothing beside its message.
using ReleaseFn = void (*)(void* data, void* context);

// Bytes that stay the sender's until `release` has run. A null `release`: nobody waits for it.
struct LentBytes {
  const void* data = nullptr;
  size_t size = 0;
  ReleaseFn release = nullptr;
  void* context = nullptr;
};

// Bytes of a tensor in a received message; valid as long as the message.
struct TensorView {
  const std::byte* data = nullptr;
  size_t size = 0;
};

// Frame: one run of bytes on its way through a transport: owned, lent by its sender, or received.
// A lent frame is not copied: its bytes must not change until the lender's release function has run, which
// may be on a thread of the transport. Thread: one at a time.
class Frame {
 public:
  Frame();  // empty
  ~Frame();
  Frame(Frame&& other) noexcept;
  Frame& operator=(Frame&& other) noexcept;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  static Frame Copy(const void* data, size_t size);  // owns a copy
  static Frame Lend(const void* data, size_t size, ReleaseFn release, void* context);
  // A second handle to the same bytes; nothing is copied. Release runs after the last handle is gone.
  Frame Share() const;

  const std::byte* data() const;
  size_t size() const;
  bool empty() const { return size() == 0; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data()), size()}; }

  // The transport's own message object (zmq_msg_t), for implementations of Channel only.
  void* native() { return storage_; }
  const void* native() const { return storage_; }

 private:
  alignas(8) unsigned char storage_[64];
};

// Channel: one task's end of its conversations. It moves verified-later messages between named peers and
// knows nothing of what they say. Implementations: zmq_transport.h (ROUTER where it binds, a DEALER for each
// connection), inproc_transport.h (threads of one process).
// Thread: the one that uses it; only the release functions of lent frames run elsewhere.
// Docs: docs/wire.md.

// A conversation's name, chosen at random by the side that connects and the same at both ends.
// Its bytes are the ZeroMQ routing id, big-endian; the first is never 0 (libzmq keeps those).
using NodeId = uint64_t;

// A fresh random id.
NodeId NewNodeId();

struct Message {
  Frame header;   // a FlatBuffers envelope, see codec.h; not yet verified when received
  Frame payload;  // tensor bytes; empty when there are none or they are inside the header
};

enum class SendResult {
  kSent,  // handed to the transport
  kFull,  // the peer is not connected yet or has too much unread: try again after Receive()
  kGone,  // no such peer, or its connection is closed
};

enum class ReceiveResult { kMessage, kTimeout };

// Bytes and messages that went through a channel: headers and payloads, as counted by `--result`.
struct ChannelStats {
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t frames_dropped = 0;  // of the wrong shape: not from a dtrain
};

class Channel {
 public:
  virtual ~Channel() = default;

  // Accepts connections at `address` ("host:port", "[::1]:port"; port 0 lets the system choose). Returns
  // the address bound. Throws UserError with address, errno text and remedy when that fails.
  virtual std::string Bind(const std::string& address) = 0;
  // Accepts connections on a TCP socket that already listens; the channel takes the descriptor over.
  virtual std::string BindDescriptor(int listening_fd) = 0;
  // Begins to connect; from now on `id` names this conversation here and at the other end. Never waits:
  // the name is resolved and the connection retried in the background until Close() or destruction.
  virtual void Connect(NodeId id, const std::string& address) = 0;
  // Ends one conversation made by Connect().
  virtual void Disconnect(NodeId id) = 0;

  // Hands `message` to `peer`'s queue; never waits. On kSent the message is taken; otherwise it is kept
  // by the caller unchanged. Lent bytes stay untouched until their release function has run.
  virtual SendResult Send(NodeId peer, Message& message) = 0;
  // Waits until a message from any peer is here or `deadline` has passed. A deadline in the past polls.
  virtual ReceiveResult Receive(TimePoint deadline, NodeId* from, Message* message) = 0;

  virtual ChannelStats stats() const = 0;
  // How often the connection of a conversation made by Connect() has come about, as far as Receive() has
  // seen: when it grows beyond 1, what was under way before may be lost. Receive() comes back early, with
  // kTimeout, when it does. 0 where connections never break, and of others.
  virtual uint64_t Connections(NodeId) const { return 0; }
};

// Makes channels of one kind. Owner: the command; it outlives its channels. Thread: any.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::unique_ptr<Channel> NewChannel() = 0;
};

}  // namespace dtrain::net
