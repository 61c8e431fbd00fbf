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
constexpr milliseconds kNewcomers{2000};

class Farewell {
 public:
  Farewell(const AbortNews& news, Membership& members, net::Channel& channel, Outbox& outbox)
      : news_(news), members_(members), channel_(channel), outbox_(outbox) {
    for (const Member& member : members.all()) {
      if (member.here()) untold_.insert(member.node);
    }
  }

  void Say(milliseconds every) {
    const TimePoint begun = Clock::now();
    for (TimePoint now = begun; IsWorthIt(now - begun); now = Clock::now()) {
      Tell();
      Listen(now + every);
    }
  }

 private:
  bool IsWorthIt(Clock::duration passed) const {
    const bool failed = news_.summary == nullptr && news_.exit_code != static_cast<int>(ExitCode::kPeerLost);
    if (failed && passed < kNewcomers && !members_.Missing().empty()) return true;
    return !untold_.empty() && passed < kAbortFarewell;
  }

  void Tell() {
    const auto abort = [&](auto& builder) {
      return CreateAbort(builder, news_.exit_code, news_.from, news_.text, news_.summary);
    };
    for (auto node = untold_.begin(); node != untold_.end();) {
      outbox_.Send(*node | 1, 0, abort);  // read at once, by a task that is busy as well
      node = outbox_.Send(*node, 0, abort) == net::SendResult::kGone ? untold_.erase(node) : std::next(node);
    }
  }

  // Drops those who say Bye, and lets in who belongs to the run, until `deadline`.
  void Listen(TimePoint deadline) {
    net::NodeId from = 0;
    net::Message message;
    while (channel_.Receive(deadline, &from, &message) == net::ReceiveResult::kMessage) {
      const wire::Envelope* envelope = net::Decode(message);
      if (envelope == nullptr) continue;
      if (envelope->body_type() == wire::Body::Bye) untold_.erase(from);
      const wire::Hello* hello = envelope->body_as_Hello();
      const auto closed = [](net::NodeId) { return false; };
      if (hello != nullptr && members_.Admit(from, *hello, closed).welcome) {
        untold_.insert(from);
        return;
      }
      if (untold_.empty()) return;
    }
  }

  const AbortNews& news_;
  Membership& members_;
  net::Channel& channel_;
  Outbox& outbox_;
  std::set<net::NodeId> untold_;
};

}  // namespace

void SayFarewell(const AbortNews& news, milliseconds every, Membership& members, net::Channel& channel,
                 Outbox& outbox) {
  Farewell(news, members, channel, outbox).Say(every);
}

}  // namespace dtrain
