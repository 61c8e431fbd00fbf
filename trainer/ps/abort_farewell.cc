#include "trainer/ps/abort_farewell.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "net/codec.h"
#include "trainer/peer/abort.h"

namespace dtrain {
namespace {

// How long a failed ps 0 tries to tell the others why.
constexpr milliseconds kAbortFarewell{1000};

// Drops those who say Bye until `deadline`, or until nobody is left.
void TakeByes(TimePoint deadline, net::Channel& channel, std::set<net::NodeId>* untold) {
  net::NodeId from = 0;
  net::Message message;
  while (!untold->empty() && channel.Receive(deadline, &from, &message) == net::ReceiveResult::kMessage) {
    const wire::Envelope* envelope = net::Decode(message);
    if (envelope != nullptr && envelope->body_type() == wire::Body::Bye) untold->erase(from);
  }
}

}  // namespace

void SayFarewell(const AbortNews& news, milliseconds every, Membership& members, net::Channel& channel,
                 Outbox& outbox) {
  std::set<net::NodeId> untold;
  for (const Member& member : members.all()) {
    if (member.here()) untold.insert(member.node);
  }
  const auto abort = [&](auto& builder) {
    return CreateAbort(builder, news.exit_code, news.from, news.text, news.summary);
  };
  const TimePoint deadline = Clock::now() + kAbortFarewell;
  while (!untold.empty() && Clock::now() < deadline) {
    for (auto node = untold.begin(); node != untold.end();) {
      outbox.Send(*node | 1, 0, abort);  // read at once, by a task that is busy as well
      node = outbox.Send(*node, 0, abort) == net::SendResult::kGone ? untold.erase(node) : std::next(node);
    }
    TakeByes(std::min(deadline, Clock::now() + every), channel, &untold);
  }
}

}  // namespace dtrain
