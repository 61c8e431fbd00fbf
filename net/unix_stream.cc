#include "net/unix_stream.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/codec.h"

namespace dtrain::net {
namespace {

// A message with an inline tensor fits in. Of a larger one as much is copied twice.
constexpr size_t kBufferBytes = 8192;
constexpr uint32_t kGreeting = 0x31755464;  // "dTu1"
constexpr uint32_t kMessage = 0x6d755464;   // "dTum"

}  // namespace

UnixHead GreetingOf(NodeId id) { return {kGreeting, 0, id}; }

Outgoing::Outgoing(Message taken)
    : head{kMessage, static_cast<uint32_t>(taken.header.size()), taken.payload.size()},
      message(std::move(taken)) {}

template <typename Iterator>
bool UnixStream::Write(Iterator first, Iterator last) const {
  while (first != last) {
    std::array<iovec, size_t{3} * kBatchMessages> parts;
    size_t count = 0;
    for (Iterator out = first; out != last && count + 3 <= parts.size(); ++out) {
      size_t skip = out->written;
      const auto add = [&](const void* data, size_t size) {
        const size_t skipped = std::min(skip, size);
        skip -= skipped;
        if (skipped == size) return;
        parts[count++] = {const_cast<char*>(static_cast<const char*>(data)) + skipped, size - skipped};
      };
      add(&out->head, sizeof(out->head));
      add(out->message.header.data(), out->message.header.size());
      add(out->message.payload.data(), out->message.payload.size());
    }
    msghdr gathered{};
    gathered.msg_iov = parts.data();
    gathered.msg_iovlen = count;
    ssize_t wrote = sendmsg(socket.get(), &gathered, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return true;
    if (wrote < 0) {
      // Also where the system has no memory for it: the peer sees the end, and connects anew.
      shutdown(socket.get(), SHUT_RDWR);
      return false;
    }
    while (wrote > 0) {
      const size_t of_first = std::min(static_cast<size_t>(wrote), first->size() - first->written);
      first->written += of_first;
      wrote -= static_cast<ssize_t>(of_first);
      if (first->written == first->size()) ++first;
    }
  }
  return true;
}

bool UnixStream::WriteOne(Outgoing* out) const { return Write(out, out + 1); }

void UnixStream::WriteQueue() {
  if (!Write(queue.begin(), queue.end())) {
    deaf = true;
    queue.clear();
  }
  while (!queue.empty() && queue.front().written == queue.front().size()) queue.pop_front();
}

UnixStream::Arrived UnixStream::Parse(uint64_t limit, LentBuffers* payloads, Message* whole) {
  if (payload == nullptr) {
    if (buffered() < sizeof(UnixHead)) return Arrived::kNothing;
    UnixHead head;
    std::memcpy(&head, buffer.data() + begin, sizeof(head));
    if (id == 0) {
      if (head.magic != kGreeting || head.header_bytes != 0 || head.payload_bytes >> 56 == 0) {
        return Arrived::kBroken;
      }
      id = head.payload_bytes;
      begin += sizeof(head);
      return Arrived::kGreeting;
    }
    if (head.magic != kMessage || head.header_bytes == 0 || head.header_bytes > kMaxHeaderBytes ||
        head.payload_bytes > limit) {
      return Arrived::kBroken;
    }
    const size_t size = sizeof(head) + head.header_bytes;
    if (buffered() < size) {
      if (buffer.size() < size) buffer.resize(size);
      return Arrived::kNothing;
    }
    message.header = Frame::Copy(buffer.data() + begin + sizeof(head), head.header_bytes);
    begin += size;
    if (head.payload_bytes > 0) BeginPayload(head.payload_bytes, payloads);
  }
  if (payload_missing > 0) return Arrived::kNothing;
  *whole = std::exchange(message, Message());
  payload = nullptr;
  return Arrived::kMessage;
}

void UnixStream::BeginPayload(size_t bytes, LentBuffers* payloads) {
  const LentBuffer& memory = payloads->Free(bytes);
  const LentBytes lent = memory.Lend(0, bytes);
  message.payload = Frame::Lend(lent.data, lent.size, lent.release, lent.context);
  const size_t here = std::min(bytes, buffered());
  payload = reinterpret_cast<std::byte*>(memory.floats());
  std::memcpy(payload, buffer.data() + begin, here);
  begin += here;
  payload += here;
  payload_missing = bytes - here;
}

ssize_t UnixStream::Read() {
  if (begin > 0) std::memmove(buffer.data(), buffer.data() + begin, buffered());
  end -= std::exchange(begin, 0);
  if (end == 0 && buffer.size() != kBufferBytes) buffer = std::vector<std::byte>(kBufferBytes);
  const iovec parts[2] = {{payload, payload_missing}, {buffer.data() + end, buffer.size() - end}};
  const bool into_payload = payload_missing > 0;
  ssize_t got;
  do {
    got = readv(socket.get(), into_payload ? parts : parts + 1, into_payload ? 2 : 1);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno != EAGAIN) got = 0;
  if (got <= 0) return got;
  const size_t of_payload = std::min(payload_missing, static_cast<size_t>(got));
  payload += of_payload;
  payload_missing -= of_payload;
  end += static_cast<size_t>(got) - of_payload;
  return got;
}

}  // namespace dtrain::net
