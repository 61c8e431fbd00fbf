// The limit that dtrain's exchanges are held against: plain ZeroMQ, one ROUTER and `clients` DEALERs in
// processes of their own over TCP loopback, one open exchange each, the same bytes each way. It shares no
// code with net/. Prints exchanges per second.
//   raw_exchange CLIENTS HEADER_BYTES PAYLOAD_BYTES EXCHANGES_PER_CLIENT      (payload 0: one frame)
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Sizes {
  size_t header = 0;
  size_t payload = 0;
};

[[noreturn]] void Fail(const char* what) {
  fmt::print(stderr, "raw_exchange: {}: {}\n", what, zmq_strerror(zmq_errno()));
  std::_Exit(1);
}

void SendBoth(void* socket, const Sizes& sizes, const std::vector<char>& bytes) {
  const int more = sizes.payload > 0 ? ZMQ_SNDMORE : 0;
  if (zmq_send(socket, bytes.data(), sizes.header, more) < 0) Fail("send");
  if (more == 0) return;
  // Lent, as dtrain lends its tensors.
  zmq_msg_t payload;
  zmq_msg_init_data(&payload, const_cast<char*>(bytes.data()), sizes.payload, nullptr, nullptr);
  if (zmq_msg_send(&payload, socket, 0) < 0) Fail("send");
}

void ReceiveAll(void* socket, zmq_msg_t* first) {
  if (zmq_msg_recv(first, socket, 0) < 0) Fail("receive");
  for (bool more = zmq_msg_more(first); more;) {
    zmq_msg_t rest;
    zmq_msg_init(&rest);
    if (zmq_msg_recv(&rest, socket, 0) < 0) Fail("receive");
    more = zmq_msg_more(&rest);
    zmq_msg_close(&rest);
  }
}

void RunClient(const std::string& endpoint, const Sizes& sizes, const std::vector<char>& bytes,
               long exchanges) {
  void* const context = zmq_ctx_new();
  void* const socket = zmq_socket(context, ZMQ_DEALER);
  if (zmq_connect(socket, endpoint.c_str()) != 0) Fail("connect");
  for (long i = 0; i < exchanges; ++i) {
    SendBoth(socket, sizes, bytes);
    zmq_msg_t answer;
    zmq_msg_init(&answer);
    ReceiveAll(socket, &answer);
    zmq_msg_close(&answer);
  }
  zmq_close(socket);
  zmq_ctx_term(context);
}

double Serve(void* socket, const Sizes& sizes, const std::vector<char>& bytes, long exchanges) {
  const long warm_up = exchanges / 20;
  Clock::time_point begun;
  for (long i = 0; i < exchanges; ++i) {
    if (i == warm_up) begun = Clock::now();
    zmq_msg_t routing_id;
    zmq_msg_init(&routing_id);
    ReceiveAll(socket, &routing_id);
    if (zmq_msg_send(&routing_id, socket, ZMQ_SNDMORE) < 0) Fail("send");
    SendBoth(socket, sizes, bytes);
  }
  return static_cast<double>(exchanges - warm_up) /
         std::chrono::duration<double>(Clock::now() - begun).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: raw_exchange CLIENTS HEADER_BYTES PAYLOAD_BYTES EXCHANGES_PER_CLIENT\n");
    return 2;
  }
  const int clients = std::atoi(argv[1]);
  const Sizes sizes{static_cast<size_t>(std::atol(argv[2])), static_cast<size_t>(std::atol(argv[3]))};
  const long exchanges = std::atol(argv[4]);
  const std::vector<char> bytes(std::max(sizes.header, sizes.payload));

  // The port is known before the clients are forked, and the context is made after: threads do not survive a
  // fork. Each client waits for it on a pipe.
  int port_pipe[2];
  if (pipe(port_pipe) != 0) return 1;
  for (int i = 0; i < clients; ++i) {
    if (fork() != 0) continue;
    char endpoint[256] = {};
    if (read(port_pipe[0], endpoint, sizeof endpoint) != sizeof endpoint) std::_Exit(1);
    RunClient(endpoint, sizes, bytes, exchanges);
    std::_Exit(0);
  }
  void* const context = zmq_ctx_new();
  void* const socket = zmq_socket(context, ZMQ_ROUTER);
  if (zmq_bind(socket, "tcp://127.0.0.1:*") != 0) Fail("bind");
  char endpoint[256] = {};
  size_t size = sizeof endpoint;
  zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size);
  for (int i = 0; i < clients; ++i) {
    if (write(port_pipe[1], endpoint, sizeof endpoint) != sizeof endpoint) return 1;
  }
  fmt::print("{:.1f}\n", Serve(socket, sizes, bytes, exchanges * clients));
  while (wait(nullptr) > 0) {
  }
  zmq_close(socket);
  zmq_ctx_term(context);
  return 0;
}
