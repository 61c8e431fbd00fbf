#include "trainer/peer/ask_status.h"

#include <fmt/core.h>

#include "net/codec.h"
#include "net/key_files.h"
#include "net/tcp.h"
#include "net/unix_transport.h"
#include "net/zmq_transport.h"

namespace dtrain {
namespace {

// How often the question is repeated: it may be lost among those of strangers.
constexpr milliseconds kAskAgain{200};
constexpr milliseconds kTryAgain{2};

// What an answer says; nothing: it is no answer.
StatusAnswer Read(const net::Message& message) {
  const wire::Envelope* const envelope = net::Decode(message);
  if (envelope == nullptr) return {};
  if (const wire::Status* const status = envelope->body_as_Status()) return {status->json()->str(), ""};
  if (const wire::Refuse* const refuse = envelope->body_as_Refuse()) return {"", refuse->text()->str(), true};
  return {};
}

std::unique_ptr<net::Transport> TransportTo(const std::string& address, const std::string& keys) {
  constexpr auto kMaxBytes = 2 * static_cast<int64_t>(net::kMaxHeaderBytes);
  if (keys.empty() && net::IsUnix(address)) {
    net::UnixOptions options;
    options.linger = milliseconds(0);
    options.max_message_bytes = kMaxBytes;
    return std::make_unique<net::UnixTransport>(options);
  }
  net::ZmqOptions options;
  options.linger_ms = 0;
  options.max_message_bytes = kMaxBytes;
  if (!keys.empty()) options.keys = net::OpenKeyRing(keys, "status");
  options.servers[address] = "ps 0";
  return std::make_unique<net::ZmqTransport>(options);
}

}  // namespace

StatusAnswer AskStatus(const std::string& address, const std::string& token, const std::string& keys,
                       milliseconds timeout) {
  net::ParseAddress(address);
  const std::unique_ptr<net::Transport> transport = TransportTo(address, keys);
  const std::unique_ptr<net::Channel> channel = transport->NewChannel();
  const net::NodeId ps = net::NewNodeId();
  channel->Connect(ps, address);
  net::Encoder encoder;
  const TimePoint deadline = Clock::now() + timeout;
  bool sent = false;
  for (TimePoint next; Clock::now() < deadline;) {
    if (Clock::now() >= next) {
      net::Message question =
          encoder.Finish({0, 0, 1}, wire::CreateAskStatusDirect(encoder.Begin(), token.c_str()));
      const bool taken = channel->Send(ps, question) == net::SendResult::kSent;
      sent |= taken;
      next = Clock::now() + (taken ? kAskAgain : kTryAgain);
    }
    net::NodeId from = 0;
    net::Message message;
    if (channel->Receive(std::min(next, deadline), &from, &message) != net::ReceiveResult::kMessage) continue;
    StatusAnswer answer = Read(message);
    if (answer.refused) answer.why = address + ": " + answer.why;
    if (answer.refused || !answer.json.empty()) return answer;
  }
  std::string why = channel->WhyNotConnected(ps);
  const bool nobody = why.empty() && channel->Connections(ps) == 0 && !sent;
  if (nobody) why = "nothing listens there, or it cannot be reached";
  if (why.empty()) why = "something listens there, and does not answer";
  return {"", fmt::format("ps 0 at {}: {} ({} ms)", address, why, timeout.count()), false, nobody};
}

}  // namespace dtrain
