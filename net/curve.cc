#include "net/curve.h"

#include <zmq.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace dtrain::net {
namespace {

// ZMQ_ZAP_ENFORCE_DOMAIN, which zmq.h has among its drafts; libzmq 4.3 knows it in every build.
constexpr int kEnforceDomain = 93;
constexpr char kZapEndpoint[] = "inproc://zeromq.zap.01";

// Version, request id, domain, address, routing id, mechanism, credentials.
enum ZapFrame { kVersion, kRequest, kDomain, kAddress, kRoutingId, kMechanism, kKey, kFrames };

void SetText(void* socket, int option, const std::string& text) {
  DT_CHECK(zmq_setsockopt(socket, option, text.data(), text.size()) == 0, option, errno);
}

void SetOne(void* socket, int option) {
  const int one = 1;
  DT_CHECK(zmq_setsockopt(socket, option, &one, sizeof(one)) == 0, option, errno);
}

// Returns false when the context ends.
bool ReceiveFrame(void* socket, int flags, std::string* frame, bool* more) {
  zmq_msg_t message;
  zmq_msg_init(&message);
  int received = -1;
  while ((received = zmq_msg_recv(&message, socket, flags)) < 0 && errno == EINTR) {
  }
  if (received >= 0) {
    frame->assign(static_cast<const char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
    *more = zmq_msg_more(&message) != 0;
  }
  zmq_msg_close(&message);
  return received >= 0;
}

bool SendFrame(void* socket, std::string_view frame, int flags) {
  while (zmq_send(socket, frame.data(), frame.size(), flags) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

}  // namespace

void ListenWithKeys(void* socket, const KeyRing& keys) {
  SetOne(socket, ZMQ_CURVE_SERVER);
  SetText(socket, ZMQ_CURVE_SECRETKEY, keys.own().secret_key);
  SetText(socket, ZMQ_ZAP_DOMAIN, "dtrain");
  SetOne(socket, kEnforceDomain);
}

void ConnectWithKeys(void* socket, const KeyRing& keys, const std::string& server_key) {
  SetText(socket, ZMQ_CURVE_SERVERKEY, server_key);
  SetText(socket, ZMQ_CURVE_PUBLICKEY, keys.own().public_key);
  SetText(socket, ZMQ_CURVE_SECRETKEY, keys.own().secret_key);
}

ZapHandler::ZapHandler(void* context, std::shared_ptr<KeyRing> keys)
    : keys_(std::move(keys)),
      watch_(keys_),
      socket_(zmq_socket(context, ZMQ_REP)),
      refused_([this](const std::string& line) { keys_->Log(line); }, "refused connections") {
  DT_CHECK(socket_ != nullptr, errno);
  const int no_linger = 0;
  DT_CHECK(zmq_setsockopt(socket_, ZMQ_LINGER, &no_linger, sizeof(no_linger)) == 0, errno);
  DT_CHECK(zmq_bind(socket_, kZapEndpoint) == 0, errno);
  thread_ = std::thread([this] { Run(); });
}

ZapHandler::~ZapHandler() { thread_.join(); }

void ZapHandler::Run() {
  while (Answer()) refused_.Tick(Clock::now());
  zmq_close(socket_);
}

// Returns false when the context ends.
bool ZapHandler::Answer() {
  std::array<std::string, kFrames> frames;
  std::string excess;
  size_t count = 0;
  for (bool more = true; more; ++count) {
    if (!ReceiveFrame(socket_, 0, count < kFrames ? &frames[count] : &excess, &more)) return false;
  }
  const bool whole = count == kFrames && frames[kVersion] == "1.0";
  const uint32_t number = whole ? Judge(frames[kAddress], frames[kMechanism], frames[kKey]) : 0;
  const std::string user = number == 0 ? "" : std::to_string(number);
  const std::string_view reply[] = {"1.0", frames[kRequest], number == 0 ? "400" : "200", "", user, ""};
  for (const std::string_view& frame : reply) {
    const bool last = &frame == std::end(reply) - 1;
    if (!SendFrame(socket_, frame, last ? 0 : ZMQ_SNDMORE)) return false;
  }
  return true;
}

// Returns the key's number; 0: the peer is refused.
uint32_t ZapHandler::Judge(const std::string& address, const std::string& mechanism, const std::string& key) {
  if (mechanism != "CURVE") {
    WarnOf(address, "it has no keys");
    return 0;
  }
  const uint32_t number = keys_->Find(key);
  if (number == 0) WarnOf(address, "its key is not in cluster.keys here");
  return number;
}

void ZapHandler::WarnOf(const std::string& address, const char* why) {
  refused_.Warn(std::hash<std::string>()(address), why, "refused a connection from " + address + ": " + why);
}

}  // namespace dtrain::net
