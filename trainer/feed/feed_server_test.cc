#include "trainer/feed/feed_server.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"
#include "net/inproc_transport.h"
#include "trainer/feed/feed_batch.h"
#include "trainer/feed/feed_test_util.h"
#include "trainer/sets/load_data.h"

namespace dtrain {
namespace {

TEST_CASE("feed server: another run, an index that is not fed and an absurd step are refused") {
  ServerUnderTest test(FedDigits());
  const auto reason = [&](uint32_t worker, uint64_t step, uint64_t run) {
    test.Ask(worker, step, run);
    test.ServeAll();
    REQUIRE(test.channel.sent.size() == 1);
    const wire::Refuse* refuse = test.channel.sent[0].envelope().body_as_Refuse();
    REQUIRE(refuse != nullptr);
    const wire::Reason said = refuse->reason();
    test.channel.sent.clear();
    return said;
  };
  CHECK(reason(1, 0, kRun + 1) == wire::Reason::Run);
  CHECK(reason(1, 0, 0) == wire::Reason::Run);
  CHECK(reason(0, 0, kRun) == wire::Reason::Index);
  CHECK(reason(3, 0, kRun) == wire::Reason::Index);
  CHECK(reason(UINT32_MAX, 0, kRun) == wire::Reason::Index);
  CHECK(reason(1, UINT64_MAX, kRun) == wire::Reason::BadRequest);
  test.Ask(1, 0);
  test.ServeAll();
  CHECK(test.channel.sent.size() == 1);
}

TEST_CASE("feed server: who does not know the token gets no batch, and learns nothing") {
  ServerUnderTest test(FedDigits());
  const auto answer = [&](uint64_t run, uint64_t token) -> const wire::Envelope& {
    test.AskUntilAnswered(1, 0, run, token, 0);
    REQUIRE(test.channel.sent.size() == 1);
    return test.channel.sent[0].envelope();
  };
  std::string text;
  for (const uint64_t run : {uint64_t{0}, kRun, kRun + 1}) {
    for (const uint64_t token : {uint64_t{0}, kToken + 1}) {
      const wire::Envelope& said = answer(run, token);
      REQUIRE(said.body_as_Refuse() != nullptr);
      CHECK(said.body_as_Refuse()->reason() == wire::Reason::Run);
      CHECK(said.run_id() == run);
      if (text.empty()) text = said.body_as_Refuse()->text()->str();
      CHECK(said.body_as_Refuse()->text()->str() == text);
    }
  }
  CHECK(answer(kRun, kToken).body_as_DataBatch() != nullptr);
  test.server.set_run(kRun, 0);  // a server without a token
  CHECK(answer(kRun, 0).body_as_Refuse() != nullptr);
}

TEST_CASE("feed server: a worker that jumps from epoch to epoch is answered now and then, others always") {
  ServerUnderTest test(FedDigits(1000));
  const auto serves = [&](uint32_t worker, uint64_t step) {
    test.channel.sent.clear();
    test.Ask(worker, step);
    test.ServeAll();
    return !test.channel.sent.empty();
  };
  int served = 0;
  for (uint64_t jump = 1; jump <= 100; ++jump) served += serves(1, 60 * jump) ? 1 : 0;
  CHECK(served >= 8);
  CHECK(served < 50);
  for (uint64_t step = 0; step < 100; ++step) CHECK(serves(2, step));
}

TEST_CASE("feed server: a worker gets its own batches, with its own key") {
  ServerUnderTest test(FedDigits());
  test.channel.keys = {{1, "worker 1"}, {2, "worker 2"}, {3, "ps 0"}};
  for (const uint32_t key : {0U, 2U, 3U}) {
    test.AskUntilAnswered(1, 0, kRun, kToken, key);
    REQUIRE(test.channel.sent.size() == 1);
    REQUIRE(test.channel.sent[0].envelope().body_as_Refuse() != nullptr);
    CHECK(test.channel.sent[0].envelope().body_as_Refuse()->reason() == wire::Reason::WrongTask);
  }
  test.channel.sent.clear();
  test.Ask(1, 0, kRun, false, kToken, 1);
  test.ServeAll();
  REQUIRE(test.channel.sent.size() == 1);
  CHECK(test.channel.sent[0].envelope().body_as_DataBatch() != nullptr);
}

TEST_CASE("feed server: frames of strangers and damaged ones are dropped, and the next request is answered") {
  ServerUnderTest test(FedDigits());
  test.Ask(1, 0);
  const net::Message request = std::move(test.channel.incoming.front().message);
  test.channel.incoming.clear();
  for (size_t size = 0; size < request.header.size(); ++size) {
    test.Hand(5, {net::Frame::Copy(request.header.data(), size), net::Frame()});
  }
  test.Hand(5, {net::Frame::Copy(request.header.data(), request.header.size()), net::Frame::Copy("more", 4)});
  test.Hand(5, test.encoder.Finish({kRun, 0, 1}, wire::CreateReady(test.encoder.Begin())));
  test.ServeAll();
  test.channel.sent.clear();  // a truncated header may still be a valid one
  test.Ask(1, 0);
  test.ServeAll();
  REQUIRE(test.channel.sent.size() == 1);
  CHECK(test.channel.sent[0].envelope().body_as_DataBatch() != nullptr);
}

TEST_CASE("feed server: a worker's batches on their way are bounded, and nobody else waits for them") {
  ServerUnderTest test(FedDigits(10));
  const auto bound =
      static_cast<size_t>(2 * BatchesAhead(FedBatchBytes(FedForm(test.config, 50, true), 784)) + 2);
  for (uint64_t step = 0; step < 40; ++step) {
    test.Ask(1, step);
    test.ServeAll();
  }
  CHECK(test.channel.sent.size() == bound);
  test.Ask(2, 0);
  test.ServeAll();
  CHECK(test.channel.sent.size() == bound + 1);
  test.channel.sent.erase(test.channel.sent.begin());  // one has arrived
  test.Ask(1, 50);
  test.ServeAll();
  REQUIRE(test.channel.sent.size() == bound + 1);
  CHECK(test.channel.sent.back().envelope().body_as_DataBatch()->local_step() == 50);
}

TEST_CASE("feed server: a request that comes again before its answer has left is not answered twice") {
  ServerUnderTest test(FedDigits());
  for (int again = 0; again < 3; ++again) test.Ask(1, 4);
  test.ServeAll();
  CHECK(test.channel.sent.size() == 1);
  test.channel.sent.clear();  // it has left and got lost
  test.Ask(1, 4);
  test.ServeAll();
  CHECK(test.channel.sent.size() == 1);
}

TEST_CASE("feed server: rows that were changed are those of the next answer, also of a step on its way") {
  ServerUnderTest test(FedDigits());
  test.Ask(1, 0);
  test.ServeAll();
  const net::Message before = std::move(test.channel.sent.back().message);
  Config other = test.config;
  other.data.seed = 20;
  test.server.UseRows(LoadData(other).train);
  test.Ask(1, 0);
  test.ServeAll();
  REQUIRE(test.channel.sent.size() == 2);
  const auto pixels = [](const net::Message& message) {
    const net::TensorView view = net::Tensor(message, *net::Decode(message)->body_as_DataBatch());
    return std::vector<std::byte>(view.data, view.data + view.size);
  };
  CHECK(pixels(before) != pixels(test.channel.sent.back().message));
}

TEST_CASE("feed server: who has started waits until worker 0 has, and holds up nobody who has not") {
  ServerUnderTest test(FedDigits());
  for (int again = 0; again < 100; ++again) test.Ask(1, 4, kRun, true);
  test.Ask(2, 0);
  test.ServeAll();
  REQUIRE(test.channel.sent.size() == 1);
  CHECK(test.channel.sent[0].to == ServerUnderTest::NodeOf(2));
  test.server.Start();
  test.ServeAll();
  REQUIRE(test.channel.sent.size() == 2);
  const wire::Envelope& answer = test.channel.sent[1].envelope();
  CHECK(answer.request() == 100);  // the latest: the worker may have dropped the others
  CHECK(answer.body_as_DataBatch()->local_step() == 4);
}

TEST_CASE("feed server: a heartbeat is answered at once, whoever asks for batches") {
  ServerUnderTest test(FedDigits());
  for (uint64_t step = 0; step < 6; ++step) test.Ask(1, step);
  auto& builder = test.encoder.Begin();
  const auto what = builder.CreateString("wait");
  test.Hand(
      ServerUnderTest::NodeOf(1) | 1,
      test.encoder.Finish({5, 0, 0}, wire::CreateHeartbeat(builder, what, 0, builder.CreateString(""))));
  test.server.Serve(TimePoint());
  REQUIRE(test.channel.sent.size() == 2);
  CHECK(test.channel.sent[0].to == (ServerUnderTest::NodeOf(1) | 1));
  CHECK(test.channel.sent[0].envelope().body_as_Heartbeat() != nullptr);
  CHECK(test.channel.sent[0].envelope().run_id() == 5);  // as asked
}

TEST_CASE("feed server: fewer batches than workers, or one too large to send, is an error of the user's") {
  Config config = FedDigits();
  config.train.batch_size = 600;
  CHECK_THROWS_WITH_AS(ServerUnderTest{config}, doctest::Contains("3 workers need at least 3"), UserError);
  Config large = FedFloats();
  large.model.inputs = 100000;
  large.net.max_message_mb = 1;
  CHECK_THROWS_WITH_AS(ServerUnderTest{large}, doctest::Contains("net.max_message_mb = 1"), UserError);
}

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
  net::Message request =
      encoder.Finish({kRun, 0, 1}, wire::CreateNeedBatch(encoder.Begin(), 1, 0, false, kToken));
  REQUIRE(worker->Send(node, request) == net::SendResult::kSent);

  LogOptions quiet;
  quiet.standard_error = false;
  Logger log("worker 0", quiet);
  const Feeder feeder(config, LoadData(config).train, std::move(bound), kRun, kToken, log);
  net::NodeId from = 0;
  net::Message answer;
  REQUIRE(worker->Receive(Clock::now() + milliseconds(5000), &from, &answer) == net::ReceiveResult::kMessage);
  CHECK(net::Decode(answer)->body_as_DataBatch() != nullptr);
}

}  // namespace
}  // namespace dtrain
