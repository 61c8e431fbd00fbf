// UnixStream: one socket of a UnixChannel: the messages that wait to be written to it, and those that arrive
// in pieces. docs/wire.md has the form of both. Owner: UnixChannel. Thread: its.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/file.h"
#include "net/channel.h"
#include "net/lent_buffer.h"

namespace dtrain::net {

// UnixHead: what stands before a message. A connection begins with one whose size is the NodeId.
struct UnixHead {
  uint32_t magic = 0;
  uint32_t header_bytes = 0;
  uint64_t payload_bytes = 0;
};
static_assert(sizeof(UnixHead) == 16);

UnixHead GreetingOf(NodeId id);

// Outgoing: a message that waits, wholly or in part, to be written.
struct Outgoing {
  explicit Outgoing(Message taken);
  size_t size() const { return sizeof(head) + message.header.size() + message.payload.size(); }

  UnixHead head;
  Message message;
  size_t written = 0;
};

struct UnixStream {
  enum class Arrived { kNothing, kMessage, kGreeting, kBroken };

  // Writes as much as the system takes of a message. Returns false, and ends the connection, when the peer
  // reads no more or the system cannot write; what the peer has sent can still be read.
  bool WriteOne(Outgoing* out) const;
  // Writes what waits, as far as the system takes it.
  void WriteQueue();
  // Takes what comes next out of what was read: a message; the greeting, which sets `id`; kBroken: what a
  // dtrain does not send, such as a payload of more than `limit` bytes; kNothing: more has to be read.
  Arrived Parse(uint64_t limit, LentBuffers* payloads, Message* whole);
  // Reads once: into the payload that is under way, and what comes after it into the buffer. Returns the
  // bytes; 0: the connection has ended; below 0: nothing is there.
  ssize_t Read();
  size_t buffered() const { return end - begin; }

  FileDescriptor socket;
  NodeId id = 0;  // 0: accepted, and it has not said yet which conversation it is
  bool accepted = false;
  bool deaf = false;     // the peer reads no more; what it has sent can still be read
  bool closing = false;  // nothing is read; it goes when its queue is empty
  bool full = false;     // the system takes nothing now; it is asked again when it says so
  std::deque<Outgoing> queue;

 private:
  template <typename Iterator>
  bool Write(Iterator first, Iterator last) const;
  void BeginPayload(size_t bytes, LentBuffers* payloads);

  std::vector<std::byte> buffer;  // received, from `begin` to `end`; empty between messages
  size_t begin = 0;
  size_t end = 0;
  Message message;  // whose payload is being received
  std::byte* payload = nullptr;
  size_t payload_missing = 0;
};

}  // namespace dtrain::net
