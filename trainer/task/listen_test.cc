#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

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

// Line: a ps that listens and one that has connected, both with `config`.
class Line {
 public:
  Line(const Config& config, const std::string& address)
      : server_(NewNetworkTransport(config)), client_(NewNetworkTransport(config)) {
    client_channel_->Connect(id_, server_channel_->Bind(address));
    REQUIRE(Passes(*client_channel_, *server_channel_, 100, kPatience));
    server_channel_->SetKnown(id_, true);
  }
  // Whether a tensor of so many bytes gets there, or back.
  bool Gets(bool there, size_t bytes, milliseconds patience) {
    return there ? Passes(*client_channel_, *server_channel_, bytes, patience)
                 : Passes(*server_channel_, *client_channel_, bytes, patience);
  }

  static constexpr milliseconds kPatience{20'000};

 private:
  bool Passes(net::Channel& from, net::Channel& to, size_t bytes, milliseconds patience) {
    const std::string payload(bytes, 'p');
    net::Message message, arrived, unexpected;
    message.header = net::Frame::Copy("head", 4);
    message.payload = net::Frame::Copy(payload.data(), payload.size());
    bool sent = false;
    net::NodeId node = 0;
    for (const TimePoint end = Clock::now() + patience; Clock::now() < end;) {
      sent = sent || from.Send(id_, message) == net::SendResult::kSent;
      from.Receive(TimePoint(), &node, &unexpected);
      const TimePoint until = Clock::now() + milliseconds(5);
      if (to.Receive(until, &node, &arrived) == net::ReceiveResult::kMessage)
        return arrived.payload.size() == bytes;
    }
    return false;
  }

  const std::unique_ptr<net::Transport> server_, client_;
  const std::unique_ptr<net::Channel> server_channel_ = server_->NewChannel();
  const std::unique_ptr<net::Channel> client_channel_ = client_->NewChannel();
  const net::NodeId id_ = net::NewNodeId();
};

TEST_CASE("listen: with replicas a ps takes a block with slots and the version before, in both directions") {
  constexpr size_t kMiB = 1 << 20;
  std::string directory = "/tmp/dtrain-listen-XXXXXX";
  REQUIRE(mkdtemp(directory.data()) != nullptr);
  Config config = LinearCluster(2, 1, 10);
  config.train.optimizer.kind = OptimizerKind::kAdam;
  config.net.max_message_mb = 1;
  int lines = 0;
  for (const bool unix_socket : {false, true}) {
    const auto gets = [&](bool there, size_t bytes, milliseconds patience) {
      config.cluster.ps[0] =
          unix_socket ? "unix:" + directory + "/" + std::to_string(++lines) : "127.0.0.1:0";
      return Line(config, config.cluster.ps[0]).Gets(there, bytes, patience);
    };
    CAPTURE(unix_socket);
    for (const bool there : {true, false}) {
      CAPTURE(there);
      config.failure.replicas = 1;
      CHECK(gets(there, 4 * kMiB, Line::kPatience));
      config.failure.replicas = 0;
      CHECK(gets(there, kMiB, Line::kPatience));
      CHECK_FALSE(gets(there, 4 * kMiB, milliseconds(500)));
    }
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace dtrain
