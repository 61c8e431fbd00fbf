// A worker whose ps is false: nothing that it says ends the worker by an abort, and its log stays clean.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zmq.h>

#include <future>

#include "base/check.h"
#include "cmd/testing/honest_run.h"

namespace dtrain::testing {
namespace {

constexpr net::Envelope kRun{77, 0, 0};
const std::string kLongText(900000, '\x1b');

// FalsePs: a ROUTER that welcomes every worker and answers one kind of message as a test says, then, a while
// later, says Abort. Thread: one.
class FalsePs {
 public:
  using Answer = std::function<net::Message(net::Encoder&, net::Envelope)>;

  FalsePs(const std::string& address, wire::Body at, Answer answer)
      : context_(zmq_ctx_new()),
        socket_(zmq_socket(context_, ZMQ_ROUTER)),
        at_(at),
        answer_(std::move(answer)) {
    const int none = 0, tick_ms = 50;
    zmq_setsockopt(socket_, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(socket_, ZMQ_RCVTIMEO, &tick_ms, sizeof tick_ms);
    DT_CHECK(zmq_bind(socket_, ("tcp://" + address).c_str()) == 0, address, errno);
  }
  ~FalsePs() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  FalsePs(const FalsePs&) = delete;
  FalsePs& operator=(const FalsePs&) = delete;

  // Until the worker has ended; false: it has not in time.
  bool Serve(Process& worker) {
    const TimePoint deadline = Clock::now() + kPatience;
    while (!worker.WaitForEnd(milliseconds(0))) {
      if (Clock::now() > deadline) return false;
      const net::Frame peer = Receive();
      if (peer.empty()) continue;
      net::Message message;
      if (More()) message.header = Receive();
      while (More()) message.payload = Receive();
      const wire::Envelope* const envelope = net::Decode(message);
      if (envelope != nullptr) OnMessage(peer, *envelope);
    }
    return true;
  }
  bool answered() const { return answers_ > 0; }

 private:
  net::Frame Receive() const {
    net::Frame frame;
    auto* const native = static_cast<zmq_msg_t*>(frame.native());
    if (zmq_msg_recv(native, socket_, 0) < 0) return {};
    return net::Frame::Copy(frame.data(), frame.size());
  }
  bool More() const {
    int more = 0;
    size_t size = sizeof more;
    return zmq_getsockopt(socket_, ZMQ_RCVMORE, &more, &size) == 0 && more != 0;
  }
  void Send(const net::Frame& peer, const net::Message& message) {
    zmq_send(socket_, peer.data(), peer.size(), ZMQ_SNDMORE);
    zmq_send(socket_, message.header.data(), message.header.size(), 0);
  }
  template <typename Build>
  void Say(const net::Frame& peer, uint64_t request, Build&& build) {
    auto& builder = encoder_.Begin();
    Send(peer, encoder_.Finish({kRun.run_id, 0, request}, build(builder)));
  }
  void OnMessage(const net::Frame& peer, const wire::Envelope& said) {
    if (said.body_type() == at_ && answers_ < 3) {
      ++answers_;
      first_ = answers_ == 1 ? Clock::now() : first_;
      return Send(peer, answer_(encoder_, {kRun.run_id, 0, said.request()}));
    }
    if (answers_ > 0 && Clock::now() > first_ + milliseconds(300)) {
      return Say(peer, 0, [](auto& builder) {
        return wire::CreateAbort(builder, 1, wire::Role::Ps, 0, builder.CreateString("over"));
      });
    }
    switch (said.body_type()) {
      case wire::Body::Hello:
        return Say(peer, 0, [](auto& builder) { return wire::CreateWelcome(builder, 50, true); });
      case wire::Body::Heartbeat:
        return Say(peer, 0, [](auto& builder) {
          return wire::CreateHeartbeat(builder, builder.CreateString("serve"), 1, builder.CreateString(""));
        });
      case wire::Body::Ready:
        return Say(peer, said.request(), [](auto& builder) {
          const std::vector<uint32_t> workers = {0};
          return wire::CreateStart(builder, 5, true, 0, builder.CreateVector(workers));
        });
      default:
        return;
    }
  }

  void* const context_;
  void* const socket_;
  const wire::Body at_;
  const Answer answer_;
  net::Encoder encoder_;
  int answers_ = 0;
  TimePoint first_;
};

template <typename Build>
FalsePs::Answer With(Build build) {
  return [build](net::Encoder& encoder, net::Envelope envelope) {
    auto& builder = encoder.Begin();
    return encoder.Finish(envelope, build(builder));
  };
}

struct Case {
  std::string name;
  wire::Body at;
  FalsePs::Answer answer;
};

FalsePs::Answer StartThat(const std::string& dealt, size_t workers, size_t names, const std::string& where) {
  return With([=](auto& builder) {
    const auto list = builder.CreateVector(std::vector<uint32_t>(workers, ~uint32_t{0}));
    const auto words = builder.CreateVectorOfStrings(std::vector<std::string>(names, std::string(40, '"')));
    const auto factors = builder.CreateVector(std::vector<double>(names, -1e308));
    const auto form = names == 0 ? 0 : wire::CreateInputForm(builder, words, words, factors, factors, -9);
    return wire::CreateStart(builder, ~uint32_t{0}, false, ~uint64_t{0}, list, ~uint64_t{0}, true,
                             ~uint64_t{0}, false, dealt.empty() ? 0 : builder.CreateString(dealt), form,
                             ~uint64_t{0}, ~uint32_t{0}, builder.CreateString(where), ~uint64_t{0});
  });
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"workers", wire::Body::Ready, StartThat("", 200000, 0, "")},
      {"dealt deep", wire::Body::Ready, StartThat(std::string(900000, '['), 1, 0, "")},
      {"dealt wrong", wire::Body::Ready, StartThat("{\"epoch\": -1e308, \"counts\": [-1, 1e300]}", 1, 0, "")},
      {"form", wire::Body::Ready, StartThat("", 1, 10000, "")},
      {"checkpoint", wire::Body::Ready, StartThat("", 1, 0, kLongText)},
  };
  cases.push_back({"welcome never", wire::Body::Hello,
                   With([](auto& builder) { return wire::CreateWelcome(builder, ~uint32_t{0}, true, 1); })});
  cases.push_back({"welcome at once", wire::Body::Hello,
                   With([](auto& builder) { return wire::CreateWelcome(builder, 0, true, 1); })});
  cases.push_back({"refusal", wire::Body::Hello, With([](auto& builder) {
                     return wire::CreateRefuse(builder, wire::Reason::NotReady,
                                               builder.CreateString(kLongText));
                   })});
  cases.push_back({"heartbeat", wire::Body::Heartbeat, With([](auto& builder) {
                     const auto text = builder.CreateString(kLongText);
                     return wire::CreateHeartbeat(builder, text, 1, text, ~uint32_t{0}, 0, 0, -77, text,
                                                  ~uint64_t{0});
                   })});
  cases.push_back({"abort", wire::Body::Ready, With([](auto& builder) {
                     return wire::CreateAbort(builder, -1, wire::Role::Worker, ~uint32_t{0},
                                              builder.CreateString(kLongText));
                   })});
  cases.push_back({"summary", wire::Body::Ready, With([](auto& builder) {
                     return wire::CreateAbort(builder, 143, wire::Role::Ps, 0, builder.CreateString("stop"),
                                              builder.CreateString(std::string(900000, '[')));
                   })});
  cases.push_back({"end", wire::Body::Ready, With([](auto& builder) {
                     return wire::CreateEnd(builder, builder.CreateString("{\"status\": \"" + kLongText));
                   })});
  cases.push_back({"weights of another size", wire::Body::Pull, [](net::Encoder& encoder, net::Envelope of) {
                     static const std::vector<float> values(100, 1.0F);
                     return encoder.Weights(
                         of, {~uint64_t{0}, ~uint64_t{0}, ~uint32_t{0}, 1, ~uint32_t{0}, ~uint64_t{0}},
                         {values.data(), 400, nullptr, nullptr});
                   }});
  cases.push_back({"a round", wire::Body::Pull, With([](auto& builder) {
                     const std::vector<wire::Exchange> exchanges(30000, wire::Exchange(~uint64_t{0}, ~0U));
                     const auto list = builder.CreateVectorOfStructs(exchanges);
                     return wire::CreateRound(builder, ~uint64_t{0}, list, list);
                   })});
  return cases;
}

// One worker and its false ps, which serves on a thread.
struct Misled {
  explicit Misled(const Case& of) : name(of.name), ps(cluster.address("ps", 0), of.at, of.answer) {}

  const std::string name;
  const HonestJob job;
  const Cluster cluster{1, 1, job.model + job.data + "train: {steps: 9, batch_size: 8}\n"};
  FalsePs ps;
  const std::unique_ptr<Process> worker = cluster.Start("worker", 0);
  std::future<bool> ended = std::async(std::launch::async, [this] { return ps.Serve(*worker); });
};

TEST_CASE("attack: no answer of a false ps aborts a worker, or reaches its log as it is") {
  std::vector<std::unique_ptr<Misled>> misled;
  for (const Case& each : Cases()) misled.push_back(std::make_unique<Misled>(each));
  for (const auto& each : misled) {
    CAPTURE(each->name);
    REQUIRE(each->ended.get());
    CHECK(each->ps.answered());
    const int code = each->worker->exit_code();
    const std::string said = each->worker->standard_error();
    CHECK((code < 128 || code == 143));
    CHECK(Count(said, "\x1b") == 0);
    CHECK(said.size() < 100000);
  }
}

}  // namespace
}  // namespace dtrain::testing
