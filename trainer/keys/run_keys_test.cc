#include "trainer/keys/run_keys.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "net/key_files.h"

namespace dtrain {
namespace {

TEST_CASE("run keys: each task gets its own secret key and the list of all, as often as it is started") {
  ClusterConfig cluster;
  cluster.ps = {"a:1"};
  cluster.worker = {"b:0", "c:0"};
  const RunKeys keys(cluster);
  const KeyDescriptor ps(keys.TextFor({Role::kPs, 0})), worker(keys.TextFor({Role::kWorker, 1}));
  CHECK((fcntl(ps.fd(), F_GETFD) & FD_CLOEXEC) != 0);
  const auto first = net::ReadKeyRing(dup(ps.fd()), "ps 0"), again = net::ReadKeyRing(dup(ps.fd()), "ps 0");
  CHECK(first->own().secret_key == again->own().secret_key);
  CHECK(first->KeysOf("ps 0") == std::vector<std::string>{first->own().public_key});
  const auto other = net::ReadKeyRing(dup(worker.fd()), "worker 1");
  CHECK(other->KeysOf("worker 1") == std::vector<std::string>{other->own().public_key});
  CHECK(other->KeysOf("ps 0") == first->KeysOf("ps 0"));
  CHECK(other->own().secret_key != first->own().secret_key);
  CHECK(RunKeys(cluster).TextFor({Role::kPs, 0}) != keys.TextFor({Role::kPs, 0}));
}

}  // namespace
}  // namespace dtrain
