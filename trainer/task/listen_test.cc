#include <doctest/doctest.h>
#include <unistd.h>

#include "base/error.h"
#include "net/tcp.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// A transport whose channel takes no descriptor: a task that gets so far throws.
struct Reached {};
class NoDescriptorChannel : public FakeChannel {
 public:
  std::string BindDescriptor(int) override { throw Reached(); }
};
class NoDescriptorTransport : public net::Transport {
 public:
  std::unique_ptr<net::Channel> NewChannel() override { return std::make_unique<NoDescriptorChannel>(); }
};

// Runs ps 0 on a socket that listens at `address` and was handed down.
void RunOn(const std::string& address, bool insecure) {
  Config config = LinearCluster(1, 1, 10);
  config.security.insecure = insecure;
  NoDescriptorTransport transport;
  LogOptions quiet;
  quiet.standard_error = false;
  Logger log("ps 0", quiet);
  TaskOptions options;
  options.listening_fd = net::Listen(address);
  try {
    RunTask(config, {Role::kPs, 0}, transport, log, options);
  } catch (...) {
    close(options.listening_fd);
    throw;
  }
}

TEST_CASE("listen: a socket that was handed down is under the same rule as an address of the config") {
  CHECK_THROWS_WITH_AS(RunOn("0.0.0.0:0", false),
                       doctest::Contains("listening beyond this machine without keys"), UserError);
  CHECK_THROWS_AS(RunOn("0.0.0.0:0", true), Reached);
  CHECK_THROWS_AS(RunOn("127.0.0.1:0", false), Reached);
}

}  // namespace
}  // namespace dtrain
