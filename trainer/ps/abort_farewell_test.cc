#include "trainer/ps/abort_farewell.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "trainer/ps/hello_test_util.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr net::NodeId kBusy = 2;
constexpr net::NodeId kGone = 4;
constexpr net::NodeId kLate = 6;

// One worker that is here says Bye, the connection of the other is closed.
class Farewell {
 public:
  Farewell() {
    members_.Worker(0)->node = kBusy;
    members_.Worker(1)->node = kGone;
    channel.gone.insert(kGone);
  }
  void Bye(net::NodeId from) {
    net::Encoder encoder;
    channel.incoming.push_back({from, encoder.Finish({}, wire::CreateBye(encoder.Begin()))});
  }
  // Worker 1 comes only now.
  void Hello(net::NodeId from) {
    channel.incoming.push_back({from, HelloMessage(config_, wire::Role::Worker, 1).Take()});
  }
  void Say(int exit_code = 4) {
    SayFarewell({{Role::kPs, 0}, exit_code, "worker 1 is lost"}, milliseconds(1), members_, channel, outbox_);
  }
  void Miss() { members_.Worker(1)->node = 0; }
  int64_t SentTo(net::NodeId node) const {
    return std::count_if(channel.sent.begin(), channel.sent.end(),
                         [&](const FakeChannel::Sent& sent) { return sent.to == node; });
  }

  FakeChannel channel;

 private:
  Config config_ = LinearCluster(1, 2, 10);
  Membership members_{config_, {Role::kPs, 0}};
  Outbox outbox_{channel};
};

TEST_CASE("abort farewell: each is told on both of its connections, and once it has said Bye no more") {
  Farewell farewell;
  farewell.Bye(kBusy);
  farewell.Say();
  CHECK(farewell.SentTo(kBusy) == 1);
  CHECK(farewell.SentTo(kBusy | 1) == 1);
  const wire::Abort* abort = farewell.channel.sent.back().envelope().body_as_Abort();
  REQUIRE(abort != nullptr);
  CHECK(abort->exit_code() == 4);
  CHECK(abort->text()->str() == "worker 1 is lost");
}

TEST_CASE("abort farewell: it is repeated to one that has not said Bye, which another's does not stop") {
  Farewell farewell;
  farewell.Bye(kGone);
  farewell.Say();
  CHECK(farewell.SentTo(kBusy) > 1);
}

TEST_CASE("abort farewell: one that comes to a run that has failed is told, not of a lost peer") {
  for (const int code : {2, 4}) {
    Farewell farewell;
    farewell.Miss();
    farewell.Bye(kBusy);
    farewell.Hello(kLate);
    farewell.Bye(kLate);
    farewell.Say(code);
    CHECK(farewell.SentTo(kLate) == (code == 2 ? 1 : 0));
  }
}

}  // namespace
}  // namespace dtrain
