// RawSocket: one ZeroMQ socket with a context of its own, for limits only. It shares no code with net/, so
// that a limit does not contain what is measured against it. Thread: one. Errors end the process.
#pragma once

#include <zmq.h>

#include <cstddef>
#include <string>

namespace dtrain::bench {

// Prints what failed and why on standard error, and exits with 1.
[[noreturn]] void FailRaw(const char* what);

// RawFrame: a received frame.
class RawFrame {
 public:
  RawFrame() { zmq_msg_init(&message_); }
  ~RawFrame() { zmq_msg_close(&message_); }
  RawFrame(const RawFrame&) = delete;
  RawFrame& operator=(const RawFrame&) = delete;

  const void* data() const { return zmq_msg_data(const_cast<zmq_msg_t*>(&message_)); }
  size_t size() const { return zmq_msg_size(&message_); }
  bool more() const { return zmq_msg_more(&message_) != 0; }
  zmq_msg_t* native() { return &message_; }

 private:
  zmq_msg_t message_;
};

class RawSocket {
 public:
  explicit RawSocket(int type);
  ~RawSocket();
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  // Binds to a free port of the loopback interface; returns the endpoint.
  std::string Bind();
  void Connect(const std::string& endpoint);

  void SendCopy(const void* data, size_t size, bool more);
  // The bytes must not change until the other end has them.
  void SendLent(const void* data, size_t size, bool more);
  // Sends a received frame on.
  void SendBack(RawFrame& frame, bool more);
  // Waits for a frame. Returns false if there is none and `wait` is false.
  bool Receive(RawFrame* frame, bool wait);

 private:
  void* const context_;
  void* const socket_;
};

}  // namespace dtrain::bench
