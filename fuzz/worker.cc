// A worker and a false ps: whatever its ps say, a worker trains, ends, or fails with an error of its own.
#include "trainer/worker/worker.h"
#include "base/error.h"
#include "fuzz/script.h"
#include "fuzz/target.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

namespace dtrain::fuzz {
namespace {

using wire::Body;

const std::vector<Body> kOfPs = {Body::Weights, Body::Weights, Body::Weights,   Body::Grant, Body::Welcome,
                                 Body::Start,   Body::Ack,     Body::Refuse,    Body::End,   Body::Round,
                                 Body::Abort,   Body::Hello,   Body::Heartbeat, Body::Order, Body::Piece};

Config ConfigOf(Input& input) {
  const uint8_t mode = input.Byte(), bits = input.Byte();
  Config config = LinearCluster(1 + (bits & 1), 2, 20);
  config.model.inputs = 6;
  config.train.mode = static_cast<TrainMode>(mode % 3);
  config.train.in_flight = (bits & 2) != 0 && mode % 3 == 0 ? 3 : 1;
  config.net.checksum = (bits & 4) != 0;
  config.net.compress = {static_cast<net::Compression>(bits / 8 & 3),
                         static_cast<net::Compression>(bits / 32 % 3)};
  config.failure.startup_timeout_s = 120;
  config.data.train.rows = 40;
  config.data.test = config.data.train;
  config.data.test.rows = 8;
  return config;
}

// The first messages of honest ps.
void Begin(const Config& config, ScriptChannel& channel) {
  channel.run = {7, 0};
  for (size_t ps = 0; ps < config.cluster.ps.size(); ++ps) channel.DeliverKind(ps, Body::Welcome);
}

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  Config config = ConfigOf(input);
  const bool begins = input.Flag();
  const int self = static_cast<int>(input.Below(2));
  config.model.outputs = 1;
  const Layout layout = MakeLayout(config, static_cast<int>(config.cluster.ps.size()));
  ScriptChannel channel(input, config, 0);
  for (size_t ps = 0; ps < config.cluster.ps.size(); ++ps) {
    ScriptChannel::Peer peer;
    peer.as = {Role::kPs, static_cast<int>(ps)};
    peer.kinds = kOfPs;
    peer.tensor_bytes = static_cast<size_t>(layout.ps[ps].size()) * sizeof(float);
    peer.answers = true;
    channel.peers.push_back(std::move(peer));
  }
  channel.on_sent = [](const ScriptChannel::Peer&, const wire::Envelope& envelope) {
    if (envelope.body_as_Push() != nullptr) ++StepsReached();
  };
  ScriptTransport transport;
  ExitHooks hooks;
  LogOptions quiet;
  quiet.standard_error = false;
  quiet.level = LogLevel::kError;
  Logger log(TaskName({Role::kWorker, self}), quiet);
  const DeviceChoice devices;
  Worker worker(config, {Role::kWorker, self}, layout, devices, nullptr, channel, transport, nullptr, hooks,
                log);
  if (begins) Begin(config, channel);
  try {
    worker.Run();
  } catch (const ScriptEnd&) {
  } catch (const Failure& failure) {
    try {
      worker.Abort(static_cast<int>(failure.code()), failure.what());
    } catch (const ScriptEnd&) {
    }
  }
  return 0;
}

const AddTarget added("worker", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
