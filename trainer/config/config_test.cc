#include <doctest/doctest.h>

#include "trainer/config/config.h"

namespace dtrain {

namespace {

TEST_CASE("task name: says role and index") {
  CHECK(TaskName({Role::kPs, 0}) == "ps 0");
  CHECK(TaskName({Role::kWorker, 12}) == "worker 12");
}

TEST_CASE("task name with address: takes the address from the list of its role") {
  const ClusterConfig cluster = {{"a:1", "b:2"}, {"c:3"}, {}};
  CHECK(TaskNameAndAddress(cluster, {Role::kPs, 1}) == "ps 1 (b:2)");
  CHECK(TaskNameAndAddress(cluster, {Role::kWorker, 0}) == "worker 0 (c:3)");
}

TEST_CASE("task name with address: of a task outside the cluster is the name alone") {
  const ClusterConfig cluster = {{"a:1"}, {"c:3"}, {}};
  CHECK(TaskNameAndAddress(cluster, {Role::kPs, 1}) == "ps 1");
  CHECK(TaskNameAndAddress(cluster, {Role::kWorker, -1}) == "worker -1");
}

TEST_CASE("task name with address: of a worker of dtrain local is the name alone") {
  const ClusterConfig cluster = {{"127.0.0.1:40001"}, {"127.0.0.1:0"}, {}};
  CHECK(TaskNameAndAddress(cluster, {Role::kWorker, 0}) == "worker 0");
  CHECK(TaskNameAndAddress(cluster, {Role::kPs, 0}) == "ps 0 (127.0.0.1:40001)");
}

TEST_CASE("determinism: a synchronous run with all workers in every round ends with the same bits") {
  Config config;
  config.cluster.worker = {"a:1", "b:1", "c:1"};
  CHECK(FirstNondeterministicKey(config) == "train.mode: async");
  config.train.mode = TrainMode::kSsp;
  CHECK(FirstNondeterministicKey(config) == "train.mode: ssp");
  config.train.mode = TrainMode::kSync;
  CHECK(FirstNondeterministicKey(config).empty());
  config.train.aggregate = 3;
  CHECK(FirstNondeterministicKey(config).empty());
  config.net.compress.pull = net::Compression::kInt8;
  CHECK(FirstNondeterministicKey(config).empty());
  config.model.kind = ModelKind::kLogistic;
  config.data.train.format = DataFormat::kLibsvm;  // rows of a table
  CHECK(FirstNondeterministicKey(config) == "net.compress.pull: int8");
  config.net.compress.push = net::Compression::kBf16;
  CHECK(FirstNondeterministicKey(config) == "net.compress.push: bf16");
  config.train.max_secs = 60;
  CHECK(FirstNondeterministicKey(config) == "train.max_secs: 60");
  config.failure.on_sigterm = OnSigterm::kLeave;
  CHECK(FirstNondeterministicKey(config) == "failure.on_sigterm: leave");
  config.train.aggregate = 2;
  CHECK(FirstNondeterministicKey(config) == "train.aggregate: 2");
}

std::string HostWarning(std::vector<std::string> ps, int64_t replicas = 1) {
  Config config;
  config.failure.replicas = replicas;
  config.cluster.ps = std::move(ps);
  return ReplicaHostWarning(config);
}

TEST_CASE("replicas: the next ps holds each, and ps 0 that of the last one") {
  Config config;
  config.cluster.ps = {"a:1", "b:1", "c:1"};
  CHECK_FALSE(HasReplica(config));
  for (int ps = 0; ps < 3; ++ps) CHECK_FALSE(HeldReplica(config, ps));
  config.failure.replicas = 1;
  CHECK(HasReplica(config));
  CHECK(HeldReplica(config, 0) == 2);
  CHECK(HeldReplica(config, 1) == 0);
  CHECK(HeldReplica(config, 2) == 1);
}

TEST_CASE("replicas: a ps and its holder on one host are told where another order would part more of them") {
  CHECK(HostWarning({"a:1", "b:1", "a:2", "b:2"}).empty());
  CHECK(HostWarning({"a:1", "a:2", "b:1"}).empty());  // any order has such a pair
  CHECK(HostWarning({"a:1", "a:2", "a:3"}).empty());  // all are on one host
  CHECK(HostWarning({"a:1", "a:2", "b:1", "a:3"}).empty());
  CHECK(HostWarning({"a:1", "a:2", "b:1", "b:2"}, 0).empty());
  CHECK(HostWarning({"a:1", "b:1", "c:1", "c:2"}) ==
        "failure.replicas = 1: ps 2 and ps 3, which holds its replica, are both on c: a host that is lost "
        "takes "
        "both. Order cluster.ps so that those of one host do not follow each other.");
  CHECK(HostWarning({"a:1", "b:1", "c:1", "a:2"}).find("ps 3 and ps 0, which holds its replica, are both") !=
        std::string::npos);
  CHECK(HostWarning({"a:1", "b:1", "b:2", "a:2"})
            .find("are both on b: a host that is lost takes both (and 1 "
                  "pair more). Order") != std::string::npos);
}

ClusterConfig Workers(std::vector<std::string> addresses) {
  ClusterConfig cluster;
  cluster.ps = {"127.0.0.1:9001"};
  cluster.worker = std::move(addresses);
  return cluster;
}

TEST_CASE("task address: a port that is only a name is left out, and this machine with it") {
  const ClusterConfig cluster = Workers({"node3:9002", "node4:0", "127.0.0.1:0", "[::1]:0", "node5:10"});
  const auto known = [&](int worker) { return KnownAddress(cluster, {Role::kWorker, worker}); };
  CHECK(known(0) == "node3:9002");
  CHECK(known(1) == "node4");
  CHECK(known(2).empty());
  CHECK(known(3).empty());
  CHECK(known(4) == "node5:10");
  CHECK(KnownAddress(cluster, {Role::kPs, 0}) == "127.0.0.1:9001");
}

TEST_CASE("task address: workers of local are counted, and one that feeds them has its address") {
  CHECK(WorkersText(Workers({"127.0.0.1:0", "127.0.0.1:0"})) == "2 workers");
  CHECK(WorkersText(Workers({"127.0.0.1:40001", "127.0.0.1:0"})) == "2 workers 127.0.0.1:40001 -");
  CHECK(WorkersText(Workers({"a:1"})) == "1 worker a:1");
}

}  // namespace

}  // namespace dtrain
