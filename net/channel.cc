#include "net/channel.h"

#include <sys/random.h>
#include <zmq.h>

#include <cerrno>
#include <new>

#include "base/check.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace dtrain::net {
namespace {

zmq_msg_t* Native(Frame& frame) { return static_cast<zmq_msg_t*>(frame.native()); }

// zmq_msg_copy and the getters take a non-const message, but change only its reference count.
zmq_msg_t* Native(const Frame& frame) { return static_cast<zmq_msg_t*>(const_cast<void*>(frame.native())); }

// ThreadSanitizer does not see how libzmq passes a message to another thread, nor how it counts who holds
// one. Under it, a loan itself records that the lender's writes happened before the release, and a frame that
// all who held it have read the bytes then.
#ifdef __SANITIZE_THREAD__
struct Loan {
  ReleaseFn release;
  void* context;
};

void ReleaseLoan(void* data, void* loan) {
  __tsan_acquire(loan);
  __tsan_acquire(data);
  const Loan taken = *static_cast<Loan*>(loan);
  delete static_cast<Loan*>(loan);
  taken.release(data, taken.context);
}

void MarkLoan(ReleaseFn* release, void** context) {
  if (*release == nullptr) return;
  *context = new Loan{*release, *context};
  *release = &ReleaseLoan;
  __tsan_release(*context);
}

void MarkEnd(zmq_msg_t* message) { __tsan_release(zmq_msg_data(message)); }
#else
void MarkLoan(ReleaseFn*, void**) {}
void MarkEnd(zmq_msg_t*) {}
#endif

}  // namespace

static_assert(sizeof(zmq_msg_t) <= sizeof(Frame) && alignof(zmq_msg_t) <= alignof(Frame));

Frame::Frame() { zmq_msg_init(Native(*this)); }

Frame::~Frame() {
  MarkEnd(Native(*this));
  zmq_msg_close(Native(*this));
}

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
  MarkLoan(&release, &context);
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

void Channel::Serve(TimePoint deadline, const MessageHandler& handler) {
  struct Flushed {
    ~Flushed() { channel->Flush(); }
    Channel* const channel;
  } const flushed{this};
  NodeId from = 0;
  Message message;
  for (int i = 0; i < kServedInARow; ++i) {
    if (Receive(deadline, &from, &message) != ReceiveResult::kMessage || !handler(from, message)) return;
  }
}

NodeId NewNodeId() {
  constexpr NodeId kFirstByte = NodeId{0xff} << 56;
  NodeId id = 0;
  while ((id & kFirstByte) == 0) {
    const ssize_t got = getrandom(&id, sizeof(id), 0);
    DT_CHECK(got == sizeof(id) || (got < 0 && errno == EINTR), got, errno);
    if (got < 0) id = 0;
  }
  return id & ~NodeId{1};
}

}  // namespace dtrain::net
