#include "trainer/config/task_address.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

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
