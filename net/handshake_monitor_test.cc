#include "net/handshake_monitor.h"

#include <doctest/doctest.h>
#include <zmq.h>

#include <memory>
#include <string>

#include "net/channel_test_util.h"

namespace dtrain::net {
namespace {

using Socket = std::unique_ptr<void, int (*)(void*)>;

Socket NewSocket(void* context, int type) {
  Socket socket(zmq_socket(context, type), zmq_close);
  const int none = 0, patience = static_cast<int>(milliseconds(kPatience).count());
  zmq_setsockopt(socket.get(), ZMQ_LINGER, &none, sizeof none);
  zmq_setsockopt(socket.get(), ZMQ_RCVTIMEO, &patience, sizeof patience);
  return socket;
}

std::string Bind(const Socket& socket) {
  REQUIRE(zmq_bind(socket.get(), "tcp://127.0.0.1:*") == 0);
  char endpoint[100];
  size_t size = sizeof endpoint;
  REQUIRE(zmq_getsockopt(socket.get(), ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
  return endpoint;
}

// Sends one message from one socket to another, through the context's thread.
bool Carries(void* context) {
  const Socket from = NewSocket(context, ZMQ_PUSH), to = NewSocket(context, ZMQ_PULL);
  REQUIRE(zmq_connect(from.get(), Bind(to).c_str()) == 0);
  char taken[5];
  return zmq_send(from.get(), "hello", 5, 0) == 5 && zmq_recv(to.get(), taken, sizeof taken, 0) == 5;
}

TEST_CASE("handshakes: what happens on a socket after its monitor has gone holds nobody") {
  const std::unique_ptr<void, int (*)(void*)> context(zmq_ctx_new(), zmq_ctx_term);
  const Socket router = NewSocket(context.get(), ZMQ_ROUTER), dealer = NewSocket(context.get(), ZMQ_DEALER);
  HandshakeMonitor(context.get(), dealer.get());
  REQUIRE(zmq_connect(dealer.get(), Bind(router).c_str()) == 0);
  REQUIRE(zmq_send(dealer.get(), "hello", 5, 0) == 5);
  char taken[5];
  CHECK(zmq_recv(router.get(), taken, sizeof taken, 0) == 5);
  CHECK(Carries(context.get()));
}

}  // namespace
}  // namespace dtrain::net
