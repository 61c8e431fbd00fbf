// Measures a gradient's message without a network: encoding and decoding it, compressing its values beside a
// copy of them, and exchanging it for weights with another thread over the in-process channel. Inline for the
// linear job, a payload frame for the other two.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "bench/compare.h"
#include "net/codec.h"
#include "net/compress.h"
#include "net/inproc_transport.h"
#include "net/lent_buffer.h"
#include "trainer/table/key_list.h"

namespace dtrain::bench {
namespace {

constexpr net::Envelope kEnvelope{1, 0, 1};
const char* const kAddress = "127.0.0.1:1";
constexpr net::NodeId kNode = net::NodeId{1} << 56;
constexpr milliseconds kPatience{1000};
constexpr int64_t kBlock = 1 << 18;  // values of a block of a tensor

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
      message = encoder.Weights(kEnvelope, {1, 1, 1}, weights_.Lend(0, weights_.bytes()));
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

// A block of a gradient in this form, with what earlier ones have left out; or back.
Prepare CompressOf(net::Compression form, bool back) {
  return [=]() -> Timed {
    auto values = std::make_shared<std::vector<float>>(kBlock);
    for (size_t i = 0; i < kBlock; ++i) (*values)[i] = std::sin(static_cast<float>(i));
    auto residual = std::make_shared<std::vector<float>>(kBlock);
    auto bytes = std::make_shared<std::vector<std::byte>>(net::CompressedBytes(form, kBlock));
    net::Compress(form, values->data(), nullptr, kBlock, bytes->data());
    if (back) return [=] { net::Decompress(form, bytes->data(), bytes->size(), kBlock, values->data()); };
    return [=] { net::Compress(form, values->data(), residual->data(), kBlock, bytes->data()); };
  };
}

// As many bytes as a block's values have.
Prepare Copy() {
  return []() -> Timed {
    auto from = std::make_shared<std::vector<float>>(kBlock, 1.0f),
         to = std::make_shared<std::vector<float>>(kBlock);
    return [=] {
      std::memcpy(to->data(), from->data(), kBlock * sizeof(float));
      benchmark::ClobberMemory();
    };
  };
}

// A block of rows of a table, whose values are rounded at random.
Prepare CompressAtRandom(net::Compression form) {
  return [=]() -> Timed {
    auto values = std::make_shared<std::vector<float>>(kBlock);
    for (size_t i = 0; i < kBlock; ++i) (*values)[i] = std::sin(static_cast<float>(i));
    auto bytes = std::make_shared<std::vector<std::byte>>(net::CompressedBytes(form, kBlock));
    return [=] { net::CompressAtRandom(form, values->data(), 1, kBlock, bytes->data()); };
  };
}

constexpr int64_t kKeys = 158'000;  // of a batch of 4,096 rows of 39 features
constexpr RowRange kRows{0, 10'000'000};

std::shared_ptr<KeyList> DrawnKeys() {
  auto keys = std::make_shared<KeyList>(kKeys);
  for (size_t i = 0; i < kKeys; ++i) {
    (*keys)[i] = i * 63 + CounterRandom(1).Below(i, 63);
  }
  return keys;
}

// Keys are packed and read.
Prepare PackKeys() {
  return []() -> Timed {
    const auto keys = DrawnKeys(), read = std::make_shared<KeyList>();
    const size_t room = MaxKeyBytes(kKeys, TableLayout(kRows.size(), 1, 1));
    const auto bytes = std::make_shared<std::vector<std::byte>>(room);
    return [=] {
      const size_t size = EncodeKeys({keys->data(), kKeys}, kRows, bytes->data());
      benchmark::DoNotOptimize(DecodeKeys({bytes->data(), size}, kKeys, kRows, read.get()));
    };
  };
}

// The same as numbers of 4 bytes, whose order is verified.
Prepare CopyKeys() {
  return []() -> Timed {
    const auto keys = DrawnKeys(), read = std::make_shared<KeyList>(kKeys);
    const auto numbers = std::make_shared<std::vector<uint32_t>>(kKeys);
    return [=] {
      for (size_t i = 0; i < kKeys; ++i) (*numbers)[i] = static_cast<uint32_t>((*keys)[i]);
      benchmark::ClobberMemory();
      uint64_t next = 0;
      for (size_t i = 0; i < kKeys && (*numbers)[i] >= next; ++i) {
        (*read)[i] = (*numbers)[i];
        next = (*read)[i] + 1;
      }
      benchmark::ClobberMemory();
    };
  };
}

void RegisterAll() {
  Compare("pack and read keys", PackKeys(), CopyKeys());
  for (const net::Compression form : {net::Compression::kBf16, net::Compression::kInt8}) {
    Compare(fmt::format("compress at random {}", net::CompressionName(form)), CompressAtRandom(form), Copy(),
            kBlock * sizeof(float));
  }
  for (const net::Compression form :
       {net::Compression::kBf16, net::Compression::kInt8, net::Compression::kTopk}) {
    const char* const name = net::CompressionName(form);
    Compare(fmt::format("compress {}", name), CompressOf(form, false), Copy(), kBlock * sizeof(float));
    Compare(fmt::format("decompress {}", name), CompressOf(form, true), Copy(), kBlock * sizeof(float));
  }
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
