// What a task gets over a Unix socket: the framing of messages (net/unix_transport).
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/input.h"
#include "fuzz/target.h"
#include "net/tcp.h"
#include "net/unix_transport.h"

namespace dtrain::fuzz {
namespace {

constexpr int64_t kMaxPayload = 100'000;

// The bytes come in pieces, and the first byte says how long those are.
int FuzzOne(const uint8_t* data, size_t size) {
  const std::string path = ScratchDirectory() + "/socket";
  unlink(path.c_str());
  net::UnixOptions options;
  options.max_request_bytes = kMaxPayload;
  options.linger = milliseconds(0);
  net::UnixTransport transport(options);
  const auto channel = transport.NewChannel();
  const std::string address = channel->Bind("unix:" + path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const net::SocketAddress to = net::Resolve(net::ParseAddress(address)).addresses.at(0);
  Require(connect(fd, to.get(), to.size) == 0, "a socket that listens can be connected to");
  Input input(data, size);
  const size_t piece = 1 + 4 * size_t{input.Byte()};
  const std::string bytes = input.Rest();
  net::NodeId from = 0;
  net::Message message;
  uint64_t received = 0;
  const auto receive = [&] {
    while (channel->Receive(TimePoint(), &from, &message) == net::ReceiveResult::kMessage) {
      Require(from >> 56 != 0, "a message has a sender");
      Require(!message.header.empty(), "a message has a header");
      Require(message.payload.size() <= kMaxPayload, "a payload is within the limit");
      received += message.header.size() + message.payload.size();
    }
  };
  for (size_t begin = 0; begin < bytes.size(); begin += piece) {
    const size_t count = std::min(piece, bytes.size() - begin);
    if (send(fd, bytes.data() + begin, count, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
    receive();
  }
  receive();
  close(fd);
  receive();
  Require(received <= bytes.size(), "no more is received than was sent");
  Require(channel->stats().bytes_received == received, "what is received is counted");
  return 0;
}

const AddTarget added("unix", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
