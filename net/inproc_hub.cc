#include "net/inproc_hub.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "net/address.h"

namespace dtrain::net {
namespace {

constexpr size_t kFirstCapacity = 16;
constexpr uint16_t kFirstInventedPort = 1024;

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

}  // namespace dtrain::net
