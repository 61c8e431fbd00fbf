// InprocHub: who listens under which name, and the queues between the channels of one InprocTransport.
// Thread: any. Locks: the hub's before an inbox's; never two inboxes at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/channel.h"

namespace dtrain::net {

struct InprocInbox;

// One conversation. Shared: either end may go while the other still holds it, or messages of it.
struct InprocLink {
  NodeId id = 0;
  std::shared_ptr<InprocInbox> connector;
  std::shared_ptr<InprocInbox> binder;
  size_t waiting_at_connector = 0;  // messages in its inbox; under that inbox's mutex
  size_t waiting_at_binder = 0;
  std::atomic<bool> closed{false};
};

struct InprocEntry {
  std::shared_ptr<InprocLink> link;
  size_t* waiting = nullptr;  // the link's count for this end
  Message message;
};

// First in, first out, in storage that grows to the largest number ever waiting and is then reused.
class InprocQueue {
 public:
  bool empty() const { return count_ == 0; }
  void Push(InprocEntry entry);
  InprocEntry Pop();

 private:
  std::vector<InprocEntry> ring_;
  size_t head_ = 0;
  size_t count_ = 0;
};

// What waits for one channel. Shared by the channel and its links.
struct InprocInbox {
  std::mutex mutex;  // for all of it
  std::condition_variable arrived;
  bool owner_waits = false;
  bool closed = false;
  InprocQueue queue;
  std::unordered_map<NodeId, std::shared_ptr<InprocLink>> peers;  // where the channel is bound: who connected
};

class InprocHub {
 public:
  // Returns the name, with a free number in place of port 0. Throws UserError when the name is taken.
  std::string Bind(const std::string& address, std::shared_ptr<InprocInbox> inbox);
  void Unbind(const std::string& name);
  // A new conversation with whoever is bound to `name`; null when nobody is. Replaces an older one of that
  // id.
  std::shared_ptr<InprocLink> Join(const std::string& name, NodeId id,
                                   std::shared_ptr<InprocInbox> connector);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<InprocInbox>> bound_;
};

}  // namespace dtrain::net
