#include "net/inproc_channel.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "net/address.h"

namespace dtrain::net {
namespace {

constexpr size_t kQueueMessages = 64;  // of one conversation, in one direction

SendResult Deliver(const std::shared_ptr<InprocLink>& link, InprocInbox& to, size_t* waiting,
                   Message& message) {
  bool wake = false;
  {
    const std::lock_guard<std::mutex> lock(to.mutex);
    if (to.closed || link->closed) return SendResult::kGone;
    if (*waiting == kQueueMessages) return SendResult::kFull;
    ++*waiting;
    to.queue.Push({link, waiting, std::move(message)});
    wake = std::exchange(to.owner_waits, false);
  }
  if (wake) to.arrived.notify_one();
  return SendResult::kSent;
}

}  // namespace

InprocChannel::InprocChannel(InprocHub& hub) : hub_(hub), inbox_(std::make_shared<InprocInbox>()) {}

InprocChannel::~InprocChannel() {
  if (!bound_name_.empty()) hub_.Unbind(bound_name_);
  for (Conversation& conversation : conversations_) CloseLink(conversation);
  InprocQueue unread;  // ends without the lock: releasing lent bytes runs their owners' code
  std::unordered_map<NodeId, std::shared_ptr<InprocLink>> peers;
  const std::lock_guard<std::mutex> lock(inbox_->mutex);
  inbox_->closed = true;
  std::swap(unread, inbox_->queue);
  std::swap(peers, inbox_->peers);
  for (auto& [id, link] : peers) link->closed = true;
}

std::string InprocChannel::Bind(const std::string& address) {
  DT_CHECK(bound_name_.empty(), bound_name_);
  bound_name_ = hub_.Bind(address, inbox_);
  return bound_name_;
}

std::string InprocChannel::BindDescriptor(int listening_fd) {
  DT_CHECK(false, listening_fd);
  return "";
}

void InprocChannel::Connect(NodeId id, const std::string& address) {
  DT_CHECK(id >> 56 != 0, id);
  DT_CHECK(FindConversation(id) == nullptr, id);
  const Address name = ParseAddress(address);
  if (name.port == 0)
    throw UserError("{}: cannot connect to port 0. Name the port that it listens at.", address);
  conversations_.push_back({id, AddressText(name), hub_.Join(AddressText(name), id, inbox_)});
}

void InprocChannel::Disconnect(NodeId id) {
  Conversation* const conversation = FindConversation(id);
  if (conversation == nullptr) return;
  CloseLink(*conversation);
  conversations_.erase(conversations_.begin() + (conversation - conversations_.data()));
}

void InprocChannel::CloseLink(Conversation& conversation) {
  const std::shared_ptr<InprocLink> link = std::move(conversation.link);
  if (link == nullptr) return;
  link->closed = true;
  const std::lock_guard<std::mutex> lock(link->binder->mutex);
  const auto found = link->binder->peers.find(link->id);
  if (found != link->binder->peers.end() && found->second == link) link->binder->peers.erase(found);
}

InprocChannel::Conversation* InprocChannel::FindConversation(NodeId id) {
  for (Conversation& conversation : conversations_) {
    if (conversation.id == id) return &conversation;
  }
  return nullptr;
}

SendResult InprocChannel::Send(NodeId peer, Message& message) {
  DT_CHECK(!message.header.empty());
  const uint64_t bytes = message.header.size() + message.payload.size();
  Conversation* const conversation = FindConversation(peer);
  const SendResult result =
      conversation != nullptr ? SendToBinder(*conversation, message) : SendToConnector(peer, message);
  if (result == SendResult::kSent) stats_.bytes_sent += bytes;
  return result;
}

// A binder that is gone may come back under its name, so it is not connected rather than gone.
SendResult InprocChannel::SendToBinder(Conversation& conversation, Message& message) {
  std::shared_ptr<InprocLink>& link = conversation.link;
  if (link == nullptr || link->closed) link = hub_.Join(conversation.address, conversation.id, inbox_);
  if (link == nullptr) return SendResult::kFull;
  const SendResult result = Deliver(link, *link->binder, &link->waiting_at_binder, message);
  return result == SendResult::kGone ? SendResult::kFull : result;
}

SendResult InprocChannel::SendToConnector(NodeId peer, Message& message) {
  std::shared_ptr<InprocLink> link;
  {
    const std::lock_guard<std::mutex> lock(inbox_->mutex);
    const auto found = inbox_->peers.find(peer);
    if (found == inbox_->peers.end()) return SendResult::kGone;
    link = found->second;
  }
  return Deliver(link, *link->connector, &link->waiting_at_connector, message);
}

ReceiveResult InprocChannel::Receive(TimePoint deadline, NodeId* from, Message* message) {
  InprocEntry entry;
  do {
    if (!Take(deadline, &entry)) return ReceiveResult::kTimeout;
    *from = entry.link->id;
    // What waited here when Disconnect() was called is nobody's any more.
  } while (entry.link->connector == inbox_ && FindConversation(*from) == nullptr);
  *message = std::move(entry.message);
  stats_.bytes_received += message->header.size() + message->payload.size();
  return ReceiveResult::kMessage;
}

bool InprocChannel::Take(TimePoint deadline, InprocEntry* entry) {
  std::unique_lock<std::mutex> lock(inbox_->mutex);
  while (inbox_->queue.empty()) {
    inbox_->owner_waits = true;
    const std::cv_status status = inbox_->arrived.wait_until(lock, deadline);
    inbox_->owner_waits = false;
    if (status == std::cv_status::timeout && inbox_->queue.empty()) return false;
  }
  *entry = inbox_->queue.Pop();
  --*entry->waiting;
  return true;
}

}  // namespace dtrain::net
