#include "trainer/feed/feeder.h"

#include <doctest/doctest.h>

#include "net/inproc_transport.h"
#include "trainer/feed/feed_test_util.h"

namespace dtrain {
namespace {

TEST_CASE("feeder: a request that waited while worker 0 loaded its data is answered, not refused") {
  const Config config = FedDigits();
  const std::string address = config.cluster.worker[0];
  net::InprocTransport transport;
  std::unique_ptr<net::Channel> bound = transport.NewChannel();
  bound->Bind(address);
  const std::unique_ptr<net::Channel> worker = transport.NewChannel();
  const net::NodeId node = net::NewNodeId();
  worker->Connect(node, address);
  net::Encoder encoder;
  net::Message request = encoder.Finish({kRun, 0, 1}, wire::CreateNeedBatch(encoder.Begin(), 1, 0));
  REQUIRE(worker->Send(node, request) == net::SendResult::kSent);

  LogOptions quiet;
  quiet.standard_error = false;
  Logger log("worker 0", quiet);
  const Feeder feeder(config, LoadData(config).train, std::move(bound), kRun, log);
  net::NodeId from = 0;
  net::Message answer;
  REQUIRE(worker->Receive(Clock::now() + milliseconds(5000), &from, &answer) == net::ReceiveResult::kMessage);
  CHECK(net::Decode(answer)->body_as_DataBatch() != nullptr);
}

}  // namespace
}  // namespace dtrain
