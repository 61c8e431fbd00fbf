#include "trainer/peer/registration.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "trainer/config/dump.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

class RefuseMessage {
 public:
  RefuseMessage(wire::Reason reason, const std::string& text) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    message_ = encoder_.Finish({}, wire::CreateRefuse(builder, reason, builder.CreateString(text)));
  }
  const wire::Refuse& get() const { return *net::Decode(message_)->body_as_Refuse(); }

 private:
  net::Encoder encoder_;
  net::Message message_;
};

TEST_CASE("registration: Hello carries who is asking, whom it looks for, and every run-scope key") {
  FakeChannel channel;
  const Config config = LinearCluster(2, 3, 10);
  Registration registration(config, {Role::kWorker, 2}, 1, 7, channel);
  registration.SayHello();
  REQUIRE(channel.sent.size() == 1);
  const wire::Hello* hello = channel.sent[0].envelope().body_as_Hello();
  REQUIRE(hello != nullptr);
  CHECK(hello->protocol() == net::kProtocol);
  CHECK(hello->role() == wire::Role::Worker);
  CHECK(hello->index() == 2);
  CHECK(hello->ps_index() == 1);
  CHECK(hello->settings()->size() == RunSettings(config).size());
  CHECK(registration.link().name() == "ps 1 (127.0.0.1:10002)");
}

TEST_CASE("registration: a reason that may pass is kept, others end the task with the ps's words") {
  FakeChannel channel;
  const Config config = LinearCluster(1, 1, 10);
  Registration registration(config, {Role::kWorker, 0}, 0, 7, channel);
  registration.OnRefuse(RefuseMessage(wire::Reason::Held, "index in use by another").get());
  CHECK(registration.Waiting() == "ps 0 (127.0.0.1:10001): index in use by another");
  CHECK_THROWS_WITH_AS(
      registration.OnRefuse(RefuseMessage(wire::Reason::Config, "train.steps is 1 there").get()),
      doctest::Contains("ps 0 (127.0.0.1:10001) refuses worker 0: train.steps is 1 there"), UserError);
}

TEST_CASE("registration: a task that was in the run waits where a ps of another config refuses it") {
  FakeChannel channel;
  const Config config = LinearCluster(1, 1, 10);
  Registration registration(config, {Role::kWorker, 0}, 0, 7, channel);
  registration.set_was_in_run();
  registration.OnRefuse(RefuseMessage(wire::Reason::Config, "train.steps is 1 there").get());
  CHECK_FALSE(registration.welcomed());
  CHECK(registration.Waiting() == "ps 0 (127.0.0.1:10001): refuses this task: train.steps is 1 there");
  registration.OnWelcome({18, 0}, true);
  CHECK(registration.saves());
  CHECK(registration.welcomed());
}

TEST_CASE("registration: a ps that was restarted has to be told Hello again") {
  FakeChannel channel;
  const Config config = LinearCluster(1, 1, 10);
  Registration registration(config, {Role::kWorker, 0}, 0, 7, channel);
  registration.OnWelcome({17, 0}, false);
  CHECK_FALSE(registration.saves());
  CHECK(registration.welcomed());
  registration.OnRefuse(RefuseMessage(wire::Reason::Unregistered, "say Hello first").get());
  CHECK_FALSE(registration.welcomed());
}

}  // namespace
}  // namespace dtrain
