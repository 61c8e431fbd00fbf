#include "net/frame.h"

#include <zmq.h>

#include <new>

namespace dtrain::net {
namespace {

zmq_msg_t* Native(Frame& frame) { return static_cast<zmq_msg_t*>(frame.native()); }

// zmq_msg_copy and the getters take a non-const message. They change reference counts only.
zmq_msg_t* Native(const Frame& frame) { return static_cast<zmq_msg_t*>(const_cast<void*>(frame.native())); }

}  // namespace

static_assert(sizeof(zmq_msg_t) <= sizeof(Frame) && alignof(zmq_msg_t) <= alignof(Frame));

Frame::Frame() { zmq_msg_init(Native(*this)); }

Frame::~Frame() { zmq_msg_close(Native(*this)); }

Frame::Frame(Frame&& other) noexcept : Frame() { zmq_msg_move(Native(*this), Native(other)); }

Frame& Frame::operator=(Frame&& other) noexcept {
  if (this != &other) zmq_msg_move(Native(*this), Native(other));
  return *this;
}

Frame Frame::Copy(const void* data, size_t size) {
  Frame frame;
  if (zmq_msg_init_size(Native(frame), size) != 0) throw std::bad_alloc();
  if (size > 0) __builtin_memcpy(zmq_msg_data(Native(frame)), data, size);
  return frame;
}

Frame Frame::Lend(const void* data, size_t size, ReleaseFn release, void* context) {
  Frame frame;
  // libzmq only reads the bytes of a message that it sends.
  if (zmq_msg_init_data(Native(frame), const_cast<void*>(data), size, release, context) != 0) {
    throw std::bad_alloc();
  }
  return frame;
}

Frame Frame::Share() const {
  Frame copy;
  zmq_msg_copy(Native(copy), Native(*this));
  return copy;
}

const std::byte* Frame::data() const { return static_cast<const std::byte*>(zmq_msg_data(Native(*this))); }

size_t Frame::size() const { return zmq_msg_size(Native(*this)); }

}  // namespace dtrain::net
