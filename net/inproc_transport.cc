#include "net/inproc_transport.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "net/address.h"
#include "net/channel.h"

namespace dtrain::net {

struct InprocInbox;

// InprocLink: one conversation. Either end may go while the other end still holds the link or messages of it.
struct InprocLink {
  NodeId id = 0;
  std::shared_ptr<InprocInbox> connector;
  std::shared_ptr<InprocInbox> binder;
  size_t waiting_at_connector = 0;  // messages in the connector's inbox; guarded by that inbox's mutex
  size_t waiting_at_binder = 0;
  std::atomic<bool> closed{false};
};

struct InprocEntry {
  std::shared_ptr<InprocLink> link;
  size_t* waiting = nullptr;  // the link's count for this end
  Message message;
};

// InprocQueue: a first-in-first-out queue whose storage grows to the largest length reached and is then
// reused.
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

// InprocTurn: what a channel in Serve() lets the senders do. A sender that finds the turn free takes it and
// handles its own message, which saves the wake-up of the owner and the wait for it. Owner: Serve().
struct InprocTurn {
  std::function<bool(InprocEntry& entry)> handle;  // used by the thread that has taken the turn
  bool taken = false;
  bool over = false;  // nobody takes it any more
  std::exception_ptr error;
};

// InprocInbox: the messages that wait for one channel. Owner: the channel and its links, shared.
struct InprocInbox {
  explicit InprocInbox(Clock::duration longest) : longest_turn(longest) {}

  // Takes the turn and handles messages until they have had `bytes`, at least one. `lock` is that of `mutex`;
  // it is open meanwhile.
  void TakeTurn(size_t bytes, std::unique_lock<std::mutex>& lock);
  // Whether the sender of so many bytes is to handle them itself.
  bool IsForSender(size_t bytes) const;
  // Wakes the owner if there is something for it to do.
  void WakeOwner();

  const Clock::duration longest_turn;  // of messages that senders handle; max(): of any

  std::mutex mutex;  // guards all members
  std::condition_variable arrived;
  bool owner_waits = false;
  bool closed = false;
  InprocTurn* turn = nullptr;  // null: the channel is not in Serve()
  Clock::duration lately{};  // what handling a message took, a mean that forgets; kept where it is asked for
  InprocQueue queue;
  std::unordered_map<NodeId, std::shared_ptr<InprocLink>> peers;  // if bound: its conversations
};

// InprocHub: the bound names of one InprocTransport and the inboxes behind them. Thread: any. Lock order: the
// hub's mutex before an inbox's; never two inboxes at once.
class InprocHub {
 public:
  // Returns the name, with a free number in place of port 0. Throws UserError when the name is taken.
  std::string Bind(const std::string& address, std::shared_ptr<InprocInbox> inbox);
  void Unbind(const std::string& name);
  // Begins a conversation with the channel bound to `name` and replaces an older one with the same id.
  // Returns null if no channel is bound there.
  std::shared_ptr<InprocLink> Join(const std::string& name, NodeId id,
                                   std::shared_ptr<InprocInbox> connector);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<InprocInbox>> bound_;
};

namespace {

constexpr size_t kFirstCapacity = 16;
constexpr uint16_t kFirstInventedPort = 1024;
constexpr int kLockTries = 200;
constexpr size_t kQueueMessages = 64;  // per conversation and direction

// The bytes that a sender handles in a row, its own message among them; the owner handles the rest. A larger
// message is worth a wake-up: its sender goes on while the owner handles it.
constexpr size_t kTurnBytes = 512 << 10;
constexpr int kMessagesOfMean = 8;

size_t BytesOf(const Message& message) { return message.header.size() + message.payload.size(); }

// Locks an inbox. It is locked for less time than a thread needs to fall asleep and to be woken.
std::unique_lock<std::mutex> Lock(std::mutex& mutex) {
  for (int i = 0; i < kLockTries; ++i) {
    if (mutex.try_lock()) return {mutex, std::adopt_lock};
    __builtin_ia32_pause();
  }
  return std::unique_lock<std::mutex>(mutex);
}

}  // namespace

void InprocQueue::Push(InprocEntry entry) {
  if (count_ == ring_.size()) {
    std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(head_), ring_.end());
    head_ = 0;
    ring_.resize(std::max(kFirstCapacity, 2 * ring_.size()));
  }
  ring_[(head_ + count_) % ring_.size()] = std::move(entry);
  ++count_;
}

InprocEntry InprocQueue::Pop() {
  InprocEntry entry = std::move(ring_[head_]);
  head_ = (head_ + 1) % ring_.size();
  --count_;
  return entry;
}

void InprocInbox::TakeTurn(size_t bytes, std::unique_lock<std::mutex>& lock) {
  turn->taken = true;
  size_t handled = 0;
  do {
    std::optional<InprocEntry> entry = queue.Pop();
    --*entry->waiting;
    lock.unlock();
    handled += BytesOf(entry->message);
    bool goes_on = false;
    std::exception_ptr error;
    const bool timed = longest_turn != Clock::duration::max();
    const TimePoint begin = timed ? Clock::now() : TimePoint();
    try {
      goes_on = turn->handle(*entry);
    } catch (...) {
      error = std::current_exception();
    }
    entry.reset();  // without the lock: release functions run their owners' code
    const Clock::duration took = timed ? Clock::now() - begin : Clock::duration();
    lock = Lock(mutex);
    lately += (took - lately) / kMessagesOfMean;
    if (goes_on) continue;
    turn->over = true;
    turn->error = error;
  } while (!turn->over && !queue.empty() && handled < bytes);
  turn->taken = false;
}

bool InprocInbox::IsForSender(size_t bytes) const {
  return turn != nullptr && !turn->taken && !turn->over && bytes <= kTurnBytes && lately <= longest_turn;
}

void InprocInbox::WakeOwner() {
  const bool wake = turn == nullptr || (!turn->taken && (turn->over || !queue.empty()));
  if (wake && std::exchange(owner_waits, false)) arrived.notify_one();
}

std::string InprocHub::Bind(const std::string& address, std::shared_ptr<InprocInbox> inbox) {
  Address name = ParseAddress(address);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (name.port == 0) {
    name.port = kFirstInventedPort;
    while (bound_.count(AddressText(name)) != 0) ++name.port;
  }
  const std::string text = AddressText(name);
  if (!bound_.emplace(text, std::move(inbox)).second) {
    throw UserError(
        "{}: cannot listen: another task of this process has this address. Name another in cluster.ps.",
        text);
  }
  return text;
}

void InprocHub::Unbind(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bound_.erase(name);
}

std::shared_ptr<InprocLink> InprocHub::Join(const std::string& name, NodeId id,
                                            std::shared_ptr<InprocInbox> connector) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = bound_.find(name);
  if (found == bound_.end()) return nullptr;
  auto link = std::make_shared<InprocLink>();
  link->id = id;
  link->connector = std::move(connector);
  link->binder = found->second;
  const std::lock_guard<std::mutex> inbox_lock(link->binder->mutex);
  std::shared_ptr<InprocLink>& known = link->binder->peers[id];
  if (known != nullptr) known->closed = true;
  known = link;
  return link;
}

// InprocChannel: a Channel between threads of one process; see inproc_transport.h. A signal does not end
// Receive() early, so a caller that checks flags uses short deadlines. Owner: the caller of
// InprocTransport::NewChannel(). Thread: one.
class InprocChannel final : public Channel {
 public:
  InprocChannel(InprocHub& hub, Clock::duration longest_turn);
  // Messages already sent can still be received by their peers; messages not received here are released.
  ~InprocChannel() override;
  InprocChannel(const InprocChannel&) = delete;
  InprocChannel& operator=(const InprocChannel&) = delete;

  std::string Bind(const std::string& address) override;
  // Must not be called: there are no descriptors here.
  std::string BindDescriptor(int listening_fd) override;
  void Connect(NodeId id, const std::string& address) override;
  void Disconnect(NodeId id) override;
  SendResult Send(NodeId peer, Message& message) override;
  ReceiveResult Receive(TimePoint deadline, NodeId* from, Message* message) override;
  void Serve(TimePoint deadline, const MessageHandler& handler) override;
  ChannelStats stats() const override { return stats_; }

 private:
  struct Conversation {
    NodeId id = 0;
    std::string address;
    std::shared_ptr<InprocLink> link;  // null until a channel is bound there
  };

  Conversation* FindConversation(NodeId id);
  SendResult SendToBinder(Conversation& conversation, Message& message);
  SendResult SendToConnector(NodeId peer, Message& message);
  void CloseLink(Conversation& conversation);
  // Whether a message is still wanted; counts it.
  bool Accept(const InprocEntry& entry);
  template <typename Done>
  bool Await(TimePoint deadline, std::unique_lock<std::mutex>& lock, Done&& done);

  InprocHub& hub_;
  const std::shared_ptr<InprocInbox> inbox_;  // shared with the links, which may outlive the channel
  std::string bound_name_;                    // empty: not bound
  std::vector<Conversation> conversations_;
  ChannelStats stats_;
};

namespace {

SendResult Deliver(const std::shared_ptr<InprocLink>& link, InprocInbox& to, size_t* waiting,
                   Message& message) {
  const size_t bytes = BytesOf(message);
  std::unique_lock<std::mutex> lock = Lock(to.mutex);
  if (to.closed || link->closed) return SendResult::kGone;
  if (*waiting == kQueueMessages) return SendResult::kFull;
  ++*waiting;
  to.queue.Push({link, waiting, std::move(message)});
  if (to.IsForSender(bytes)) to.TakeTurn(kTurnBytes, lock);
  to.WakeOwner();
  return SendResult::kSent;
}

}  // namespace

InprocChannel::InprocChannel(InprocHub& hub, Clock::duration longest_turn)
    : hub_(hub), inbox_(std::make_shared<InprocInbox>(longest_turn)) {}

InprocChannel::~InprocChannel() {
  if (!bound_name_.empty()) hub_.Unbind(bound_name_);
  for (Conversation& conversation : conversations_) CloseLink(conversation);
  InprocQueue unread;  // destroyed without the lock: release functions run their owners' code
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
  const uint64_t bytes = BytesOf(message);
  Conversation* const conversation = FindConversation(peer);
  const SendResult result =
      conversation != nullptr ? SendToBinder(*conversation, message) : SendToConnector(peer, message);
  if (result == SendResult::kSent) stats_.bytes_sent += bytes;
  return result;
}

// A binder that has gone may come back under its name, so the answer is kFull, not kGone.
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
    const std::unique_lock<std::mutex> lock = Lock(inbox_->mutex);
    const auto found = inbox_->peers.find(peer);
    if (found == inbox_->peers.end()) return SendResult::kGone;
    link = found->second;
  }
  return Deliver(link, *link->connector, &link->waiting_at_connector, message);
}

bool InprocChannel::Accept(const InprocEntry& entry) {
  // A message that waited here when Disconnect() was called is dropped.
  if (entry.link->connector == inbox_ && FindConversation(entry.link->id) == nullptr) return false;
  stats_.bytes_received += BytesOf(entry.message);
  return true;
}

ReceiveResult InprocChannel::Receive(TimePoint deadline, NodeId* from, Message* message) {
  std::optional<InprocEntry> entry;
  do {
    entry.reset();  // without the lock: release functions run their owners' code
    std::unique_lock<std::mutex> lock = Lock(inbox_->mutex);
    if (!Await(deadline, lock, [this] { return !inbox_->queue.empty(); })) return ReceiveResult::kTimeout;
    entry = inbox_->queue.Pop();
    --*entry->waiting;
  } while (!Accept(*entry));
  *from = entry->link->id;
  *message = std::move(entry->message);
  return ReceiveResult::kMessage;
}

void InprocChannel::Serve(TimePoint deadline, const MessageHandler& handler) {
  InprocTurn turn;
  turn.handle = [&](InprocEntry& entry) { return !Accept(entry) || handler(entry.link->id, entry.message); };
  std::unique_lock<std::mutex> lock = Lock(inbox_->mutex);
  inbox_->turn = &turn;
  const auto mine = [&] { return !turn.taken && (turn.over || !inbox_->queue.empty()); };
  for (int i = 0; i < kServedInARow && Await(deadline, lock, mine) && !turn.over; ++i) {
    inbox_->TakeTurn(0, lock);
  }
  turn.over = true;
  Await(TimePoint::max(), lock, [&] { return !turn.taken; });
  inbox_->turn = nullptr;
  lock.unlock();
  if (turn.error != nullptr) std::rethrow_exception(turn.error);
}

// Waits until `done()`. False: it is not at `deadline`.
template <typename Done>
bool InprocChannel::Await(TimePoint deadline, std::unique_lock<std::mutex>& lock, Done&& done) {
  while (!done()) {
    if (Clock::now() >= deadline) return false;  // who only looks needs no system call
    inbox_->owner_waits = true;
    inbox_->arrived.wait_until(lock, deadline);
    inbox_->owner_waits = false;
  }
  return true;
}

InprocTransport::InprocTransport() : hub_(std::make_unique<InprocHub>()) {}

InprocTransport::~InprocTransport() = default;

std::unique_ptr<Channel> InprocTransport::NewChannel() {
  return std::make_unique<InprocChannel>(*hub_, longest_turn_);
}

}  // namespace dtrain::net
