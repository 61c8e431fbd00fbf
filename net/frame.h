// Frame: one run of bytes on its way through a transport: owned, lent by its sender, or received.
// A lent frame is not copied: its bytes must not change until the lender's release function has run, which
// may be on a thread of the transport. Thread: one at a time.
#pragma once

#include <cstddef>
#include <string_view>

namespace dtrain::net {

// Headers that a channel hands out start at a multiple of this, so that numbers in them can be read in place.
// Payloads are wherever they happened to arrive, or where their lender put them.
constexpr size_t kHeaderAlignment = 8;

// Runs exactly once, when the transport no longer reads the bytes; on any thread, so it must not block.
// libzmq's own kind of function, so that lending allocates nothing beside its message.
using ReleaseFn = void (*)(void* data, void* context);

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

}  // namespace dtrain::net
