#include "trainer/worker/ps_client.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "trainer/model/model.h"
#include "trainer/testing/flood_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

Config Impatient() {
  Config config = LinearCluster(1, 1, 2);
  config.failure.startup_timeout_s = 0.05;
  config.net.timeout_ms = 50;
  return config;
}

// A worker whose ps sends heartbeats without end, on its main connection.
struct Flooded {
  Flooded() {
    channel.flood = {client.peers()[0].node(), Message([](auto& builder) {
                       return wire::CreateHeartbeat(builder, builder.CreateString("serve"), 0,
                                                    builder.CreateString(""));
                     })};
  }
  template <typename Build>
  net::Message Message(Build&& build) {
    return encoder.Finish({17, 0, 0}, build(encoder.Begin()));
  }
  void Welcome() {
    channel.incoming.push_back({client.peers()[0].node(), Message([](auto& builder) {
                                  return wire::CreateWelcome(builder, 100, false);
                                })});
  }

  const Config config = Impatient();
  const Layout layout = PlaceVariables(ModelVariables(config.model), 1, config.placement);
  net::Encoder encoder;
  FloodChannel channel;
  FloodTransport transport;
  Activity activity;
  Logger log{"worker 0", LogOptions{LogLevel::kError, false, "", false}};
  PsClient client{config, {Role::kWorker, 0}, layout, channel, transport, activity, log};
};

TEST_CASE("ps client: joining ends at its deadline, however much comes meanwhile") {
  Flooded f;
  CHECK_THROWS_AS(f.client.Join(), PeerLost);
}

TEST_CASE("ps client: a question ends at its deadline, however much else comes") {
  Flooded f;
  f.Welcome();
  f.client.Join();
  CHECK_THROWS_WITH_AS(
      f.client.Call(0, false, "ready", [](auto& builder) { return wire::CreateReady(builder); }),
      doctest::Contains("no reply to ready"), PeerLost);
}

TEST_CASE("ps client: a worker with something else to do takes a bounded number of messages") {
  Flooded f;
  f.Welcome();
  f.client.Join();
  f.client.CollectArrived();
  f.client.Attend();
  CHECK(f.channel.taken > 0);
}

}  // namespace
}  // namespace dtrain
