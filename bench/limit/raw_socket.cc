#include "bench/limit/raw_socket.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdlib>

namespace dtrain::bench {
namespace {

// A process whose peer has died must not wait for ever.
constexpr int kPatienceMs = 60'000;

}  // namespace

void FailRaw(const char* what) {
  fmt::print(stderr, "limit: {}: {}\n", what, zmq_strerror(zmq_errno()));
  std::exit(1);
}

RawSocket::RawSocket(int type) : context_(zmq_ctx_new()), socket_(zmq_socket(context_, type)) {
  if (socket_ == nullptr) FailRaw("socket");
  zmq_setsockopt(socket_, ZMQ_RCVTIMEO, &kPatienceMs, sizeof kPatienceMs);
  zmq_setsockopt(socket_, ZMQ_SNDTIMEO, &kPatienceMs, sizeof kPatienceMs);
}

RawSocket::~RawSocket() {
  zmq_close(socket_);
  zmq_ctx_term(context_);
}

std::string RawSocket::Bind() {
  if (zmq_bind(socket_, "tcp://127.0.0.1:*") != 0) FailRaw("bind");
  char endpoint[256] = {};
  size_t size = sizeof endpoint;
  zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, endpoint, &size);
  return endpoint;
}

void RawSocket::Connect(const std::string& endpoint) {
  if (zmq_connect(socket_, endpoint.c_str()) != 0) FailRaw("connect");
}

void RawSocket::SendCopy(const void* data, size_t size, bool more) {
  if (zmq_send(socket_, data, size, more ? ZMQ_SNDMORE : 0) < 0) FailRaw("send");
}

void RawSocket::SendLent(const void* data, size_t size, bool more) {
  zmq_msg_t message;
  zmq_msg_init_data(&message, const_cast<void*>(data), size, nullptr, nullptr);
  if (zmq_msg_send(&message, socket_, more ? ZMQ_SNDMORE : 0) < 0) FailRaw("send");
}

void RawSocket::SendBack(RawFrame& frame, bool more) {
  if (zmq_msg_send(frame.native(), socket_, more ? ZMQ_SNDMORE : 0) < 0) FailRaw("send");
}

bool RawSocket::Receive(RawFrame* frame, bool wait) {
  if (zmq_msg_recv(frame->native(), socket_, wait ? 0 : ZMQ_DONTWAIT) >= 0) return true;
  if (wait || errno != EAGAIN) FailRaw("receive");
  return false;
}

}  // namespace dtrain::bench
