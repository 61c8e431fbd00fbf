// CURVE on ZeroMQ sockets: who connects proves by a key who it is, and every frame is encrypted. A listener
// asks the ZAP handler of its context about each key; without a handler it lets nobody in. Wire format:
// docs/wire.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/peer_log.h"
#include "net/keys.h"

namespace dtrain::net {

// Call these before the socket is bound or connected. `server_key`: the public key of the listener.
void ListenWithKeys(void* socket, const KeyRing& keys);
void ConnectWithKeys(void* socket, const KeyRing& keys, const std::string& server_key);

// ZapHandler: answers, on a thread, whether a key is listed. Messages then carry the key's number as their
// User-Id. It also has the list read again when its file changes. Make it before the first listener of the
// context. Owner: ZmqTransport. It ends with the context: call zmq_ctx_term() before the
// destructor.
class ZapHandler {
 public:
  ZapHandler(void* context, std::shared_ptr<KeyRing> keys);
  ~ZapHandler();
  ZapHandler(const ZapHandler&) = delete;
  ZapHandler& operator=(const ZapHandler&) = delete;

 private:
  void Run();
  bool Answer();
  uint32_t Judge(const std::string& address, const std::string& mechanism, const std::string& key);
  void WarnOf(const std::string& address, const char* why);

  const std::shared_ptr<KeyRing> keys_;
  const KeyListWatch watch_;
  void* const socket_;  // used by the thread, which closes it
  PeerLog refused_;     // of the thread
  std::thread thread_;
};

}  // namespace dtrain::net
