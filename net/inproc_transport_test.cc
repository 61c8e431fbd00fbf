#include "net/inproc_transport.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "net/channel_test_util.h"

namespace dtrain::net {
namespace {

// A thread that serves the channel until a message "end" comes, and answers each message with its bytes.
class Echo {
 public:
  explicit Echo(Channel& channel) : thread_([this, &channel] { Run(channel); }) {}
  ~Echo() { thread_.join(); }

  std::thread::id thread() const { return thread_.get_id(); }
  // The thread that has handled the last message. REQUIRES: its answer is here.
  std::thread::id handled_by() const { return handled_by_; }
  // REQUIRES: the thread is about to end.
  const std::string& error() {
    while (!done_) std::this_thread::yield();
    return error_;
  }

 private:
  void Run(Channel& channel) {
    const auto handle = [&](NodeId from, Message& message) {
      if (message.header.text() == "throw") throw UserError("thrown");
      handled_by_ = std::this_thread::get_id();
      ended_ = message.header.text() == "end";
      Message answer{message.header.Share(), message.payload.Share()};
      CHECK(channel.Send(from, answer) == SendResult::kSent);
      return !ended_;
    };
    try {
      while (!ended_) channel.Serve(Clock::now() + kPatience, handle);
    } catch (const UserError& error) {
      error_ = error.what();
    }
    done_ = true;
  }

  std::thread::id handled_by_;
  bool ended_ = false;
  std::string error_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// Senders have other work, and any message takes longer than a wake-up.
struct GoingOnKind : InprocKind {
  static std::unique_ptr<Transport> NewTransport() {
    auto transport = std::make_unique<InprocTransport>();
    transport->SendersGoOn(Clock::duration::zero());
    return transport;
  }
};

// Sends `text` until a message of it has been handled by `by`. False: that has not happened.
template <typename Kind>
bool HandledBy(const std::function<bool()>& by, Pair<Kind>& pair, const std::string& text,
               const std::string& payload = "") {
  const TimePoint deadline = Clock::now() + kPatience;
  while (Clock::now() < deadline) {
    REQUIRE(SendSoon(*pair.client, pair.id, TextMessage(text, payload)) == SendResult::kSent);
    CHECK(ReceiveSoon(*pair.client).payload() == payload);
    if (by()) return true;
  }
  return false;
}

}  // namespace

TEST_CASE(
    "inproc: a sender runs the handler of a channel that waits in Serve(), and has its answer at once") {
  Pair<InprocKind> pair;
  Echo echo(*pair.server);
  CHECK(HandledBy([&] { return echo.handled_by() == std::this_thread::get_id(); }, pair, "small"));
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("end")) == SendResult::kSent);
}

TEST_CASE("inproc: a large message is handled by the channel's own thread") {
  Pair<InprocKind> pair;
  Echo echo(*pair.server);
  const std::string large(1 << 20, 'x');
  CHECK(HandledBy([&] { return echo.handled_by() == echo.thread(); }, pair, "large", large));
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("end")) == SendResult::kSent);
}

TEST_CASE("inproc: a sender that goes on leaves messages that take long to the channel's own thread") {
  Pair<GoingOnKind> pair;
  Echo echo(*pair.server);
  CHECK(HandledBy([&] { return echo.handled_by() == echo.thread(); }, pair, "first"));
  for (int i = 0; i < 100; ++i) {
    REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("next")) == SendResult::kSent);
    ReceiveSoon(*pair.client);
    CHECK(echo.handled_by() == echo.thread());
  }
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("end")) == SendResult::kSent);
}

TEST_CASE("inproc: an error of the handler ends Serve() and not the sender") {
  Pair<InprocKind> pair;
  Echo echo(*pair.server);
  CHECK(HandledBy([&] { return echo.handled_by() == std::this_thread::get_id(); }, pair, "small"));
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("throw")) == SendResult::kSent);
  CHECK(echo.error() == "thrown");
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("after")) == SendResult::kSent);
  CHECK(ReceiveSoon(*pair.server).header() == "after");
}

TEST_CASE("inproc: many senders take turns, and one at a time runs the handler") {
  constexpr int kSenders = 4, kEach = 2000;
  Pair<InprocKind> pair;
  int inside = 0, handled = 0, answers = 0;  // no lock: ThreadSanitizer sees whether two are inside
  std::thread server([&] {
    const auto handle = [&](NodeId from, Message& message) {
      CHECK(++inside == 1);
      Message answer{message.header.Share(), Frame()};
      CHECK(pair.server->Send(from, answer) == SendResult::kSent);
      --inside;
      return ++handled < kSenders * kEach;
    };
    while (handled < kSenders * kEach) pair.server->Serve(Clock::now() + milliseconds(1), handle);
  });
  std::vector<std::thread> senders;
  std::mutex mutex;
  for (int i = 0; i < kSenders; ++i) {
    senders.emplace_back([&] {
      const std::unique_ptr<Channel> client = pair.transport->NewChannel();
      const NodeId id = NewNodeId();
      client->Connect(id, pair.address);
      int own = 0;
      for (int j = 0; j < kEach; ++j) {
        const std::string text = std::to_string(j);
        Message message = TextMessage(text);
        if (client->Send(id, message) != SendResult::kSent) break;
        Received answer;
        if (client->Receive(Clock::now() + kPatience, &answer.from, &answer.message) !=
            ReceiveResult::kMessage)
          break;
        own += answer.header() == text;
      }
      const std::lock_guard<std::mutex> lock(mutex);
      answers += own;
    });
  }
  for (std::thread& sender : senders) sender.join();
  server.join();
  CHECK(answers == kSenders * kEach);
}

}  // namespace dtrain::net
