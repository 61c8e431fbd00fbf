// Measures a gradient's message without a network: encoding and decoding it, and exchanging it for weights
// with another thread over the in-process channel. Inline for the linear job, a payload frame for the other
// two.
#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "bench/compare.h"
#include "net/codec.h"
#include "net/inproc_transport.h"
#include "net/lent_buffer.h"

namespace dtrain::bench {
namespace {

constexpr net::Envelope kEnvelope{1, 0, 1};
const char* const kAddress = "127.0.0.1:1";
constexpr net::NodeId kNode = net::NodeId{1} << 56;
constexpr milliseconds kPatience{1000};

Prepare Encode(size_t bytes) {
  return [=]() -> Timed {
    auto encoder = std::make_shared<net::Encoder>();
    auto buffer = std::make_shared<net::LentBuffer>(bytes);
    return [=] {
      const net::Message message = encoder->Push(kEnvelope, 0, 1, 0, buffer->Lend(0, bytes));
      benchmark::DoNotOptimize(net::Decode(message));
    };
  };
}

// Echo: answers every message with weights of the same size until it is destroyed.
class Echo {
 public:
  Echo(net::Transport& transport, size_t bytes) : channel_(transport.NewChannel()), weights_(bytes) {
    channel_->Bind(kAddress);
    thread_ = std::thread([this] { Run(); });
  }
  ~Echo() {
    end_ = true;
    thread_.join();
  }

 private:
  void Run() {
    net::Encoder encoder;
    net::NodeId from = 0;
    net::Message message;
    while (!end_) {
      if (channel_->Receive(Clock::now() + milliseconds(10), &from, &message) != net::ReceiveResult::kMessage)
        continue;
      message = encoder.Weights(kEnvelope, 1, 1, 1, 0, weights_.Lend(0, weights_.bytes()));
      channel_->Send(from, message);
    }
  }

  const std::unique_ptr<net::Channel> channel_;
  const net::LentBuffer weights_;
  std::atomic<bool> end_{false};
  std::thread thread_;
};

// Exchange: the client's side of an exchange.
class Exchange {
 public:
  explicit Exchange(size_t bytes)
      : echo_(transport_, bytes), channel_(transport_.NewChannel()), gradient_(bytes) {
    channel_->Connect(kNode, kAddress);
  }
  void Run() {
    net::Message message = encoder_.Push(kEnvelope, 0, 1, 0, gradient_.Lend(0, gradient_.bytes()));
    while (channel_->Send(kNode, message) != net::SendResult::kSent) std::this_thread::yield();
    net::NodeId from = 0;
    channel_->Receive(Clock::now() + kPatience, &from, &message);
  }

 private:
  net::InprocTransport transport_;
  Echo echo_;
  const std::unique_ptr<net::Channel> channel_;
  net::Encoder encoder_;
  const net::LentBuffer gradient_;
};

Prepare ExchangeInProcess(size_t bytes) {
  return [=]() -> Timed {
    auto exchange = std::make_shared<Exchange>(bytes);
    return [=] { exchange->Run(); };
  };
}

void RegisterAll() {
  for (const size_t bytes : {8, 31'400, 318'040}) {
    RegisterTimed(fmt::format("encode and decode {} bytes/dtrain", bytes), Encode(bytes));
    RegisterTimed(fmt::format("exchange in process {} bytes/dtrain", bytes), ExchangeInProcess(bytes));
  }
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) {
  dtrain::bench::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
