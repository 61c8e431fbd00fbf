// Tasks of a run with keys, driven message by message over TCP: a listed key does what its role may do, in
// its own conversation, and nothing else.
#include <doctest/doctest.h>

#include <future>
#include <map>
#include <memory>
#include <string>

#include "net/keys.h"
#include "net/tcp.h"
#include "trainer/task/raw_worker_test_util.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// A ps 0 with keys for itself, two workers, ps 1 and status; a transport of each.
struct KeyedRun {
  Config config = LinearCluster(1, 2, 100);
  std::map<std::string, std::unique_ptr<net::Transport>> transports;
  int listening = net::Listen("127.0.0.1:0");
  std::future<RunSummary> ps;

  KeyedRun() {
    config.cluster.ps = {net::ListeningAddress(listening)};
    config.cluster.min_workers = 1;
    config.security.keys = "/keys";
    std::map<std::string, net::KeyPair> pairs;
    std::vector<net::ListedKey> listed;
    for (const char* name : {"ps 0", "ps 1", "worker 0", "worker 1", "status"}) {
      pairs[name] = net::NewKeyPair();
      listed.push_back({name, pairs[name].public_key});
    }
    for (const auto& [name, pair] : pairs) {
      transports[name] =
          NewNetworkTransport(config, std::make_shared<net::KeyRing>(pair.secret_key, name, listed));
    }
    ps = std::async(std::launch::async, [this] {
      LogOptions log_options;
      log_options.standard_error = false;
      Logger log("ps 0", log_options);
      TaskOptions options;
      options.listening_fd = listening;
      return RunTask(config, {Role::kPs, 0}, *transports.at("ps 0"), log, options);
    });
  }
};

std::string RefusalOf(RawWorker& worker) {
  const wire::Refuse* refuse = worker.Expect<wire::Refuse>();
  return refuse == nullptr ? "" : refuse->text()->str();
}

TEST_CASE("keys: a key joins as its own task alone") {
  KeyedRun run;
  for (const char* other : {"ps 1", "worker 0", "status"}) {
    CAPTURE(other);
    RawWorker impostor(run.config, *run.transports.at(other), 1);
    impostor.SendHello();
    CHECK(RefusalOf(impostor) == "its key is not the one of worker 1");
  }
  RawWorker worker(run.config, *run.transports.at("worker 0"), 0);
  worker.Begin();
  worker.End(4);
  run.ps.get();
}

TEST_CASE("keys: nobody speaks in the conversation of another, whose number it knows") {
  KeyedRun run;
  const net::NodeId node = net::NewNodeId();
  auto worker = std::make_unique<RawWorker>(run.config, *run.transports.at("worker 0"), 0, 0, node);
  worker->Begin();
  const uint64_t run_id = worker->run_id();
  {
    RawWorker thief(run.config, *run.transports.at("worker 1"), 1, 0, node);
    thief.set_run_id(run_id);
    thief.SendHello();  // as itself, but in the other's conversation
    thief.SendPush(4, {100, 100});
    thief.Send(4, [](auto& builder) { return wire::CreatePull(builder); });
    CHECK(thief.Receive(milliseconds(300)) == nullptr);
  }
  // The worker goes on over another connection, as after a cut.
  worker = std::make_unique<RawWorker>(run.config, *run.transports.at("worker 0"), 0, 0, node);
  worker->set_run_id(run_id);
  worker->Send(4, [](auto& builder) { return wire::CreatePull(builder); });
  const wire::Weights* weights = worker->Expect<wire::Weights>();
  REQUIRE(weights != nullptr);
  CHECK(weights->version() == 0);
  worker->SendPush(5, {1, 2});
  weights = worker->Expect<wire::Weights>();
  REQUIRE(weights != nullptr);
  CHECK(weights->version() == 1);
  worker->End(6);
  CHECK(run.ps.get().global_step == 1);
}

TEST_CASE("keys: the status key gets a heartbeat for a heartbeat, and nothing that it asks or tells counts") {
  KeyedRun run;
  RawWorker worker(run.config, *run.transports.at("worker 0"), 0);
  worker.Begin();
  RawWorker status(run.config, *run.transports.at("status"), 0);
  status.set_run_id(worker.run_id());
  status.Send(4, [](auto& builder) { return wire::CreatePull(builder); });
  CHECK(RefusalOf(status).find("it gave this task up") == 0);
  status.SendPush(5, {100, 100});
  CHECK(RefusalOf(status).find("it gave this task up") == 0);
  status.Send(0, [](auto& builder) {
    return wire::CreateHeartbeat(builder, builder.CreateString("look"), 0, builder.CreateString(""), 0, 0, 0,
                                 15);
  });
  const wire::Envelope* beat = status.Receive(kPatience, /*beats=*/true);
  REQUIRE(beat != nullptr);
  CHECK(beat->body_as_Heartbeat() != nullptr);
  worker.SendPush(4, {1, 2});
  const wire::Weights* weights = worker.Expect<wire::Weights>();
  REQUIRE(weights != nullptr);
  CHECK(weights->version() == 1);
  worker.End(5);
  CHECK(run.ps.get().global_step == 1);
}

}  // namespace
}  // namespace dtrain
