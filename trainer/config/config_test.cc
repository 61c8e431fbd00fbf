#include "trainer/config/config.h"

#include <doctest/doctest.h>

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

}  // namespace
}  // namespace dtrain
