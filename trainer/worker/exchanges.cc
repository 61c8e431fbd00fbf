#include "trainer/worker/exchanges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "trainer/device/device_store.h"
#include "trainer/model/layout.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {

Exchanges::Exchanges(const Config& config, const Layout& layout, const std::vector<Conversation*>& links)
    : config_(config),
      ring_(static_cast<size_t>(config.train.in_flight)),
      staleness_(config.train.in_flight) {
  int64_t blocks = 0;
  for (size_t ps = 0; ps < links.size(); ++ps) {
    Flow flow;
    flow.link = links[ps];
    flow.range = layout.ps[ps];
    flow.blocks = BlockCount(flow.range);
    flow.first_block = std::exchange(blocks, blocks + flow.blocks);
    flow.window = WindowOf(config.train, flow.range);
    flows_.push_back(flow);
  }
}

int64_t Exchanges::WindowOf(const TrainConfig& train, Range range) {
  return MaxOpenBlocks(train, BlockCount(range));
}

void Exchanges::Push(const net::LentBuffer& buffer, uint32_t examples, std::optional<float> loss) {
  Exchange push;
  push.gradient = &buffer;
  push.hold = buffer.KeepLent();
  push.examples = examples;
  push.loss = loss;
  Begin(std::move(push));
  staleness_.OnPushed();
  --steps_;
}

void Exchanges::Pull(std::optional<Entry> entry) {
  DT_CHECK(open() == 0, open());
  Exchange pull;
  pull.entry = std::move(entry);
  Begin(std::move(pull));
}

void Exchanges::Begin(Exchange exchange) {
  DT_CHECK(open() < static_cast<int64_t>(ring_.size()), open());
  ExchangeOf(begun_) = std::move(exchange);
  ++begun_;
  for (Flow& flow : flows_) SendBlocks(flow);
}

// Sends blocks of the open exchanges, in order, while the window has room.
void Exchanges::SendBlocks(Flow& flow) {
  while (flow.sent < begun_ * flow.blocks && flow.sent - flow.answered < flow.window) {
    SendBlock(flow, ExchangeOf(flow.sent / flow.blocks), flow.sent % flow.blocks);
    ++flow.sent;
  }
  DropSent();
}

void Exchanges::SendBlock(const Flow& flow, const Exchange& exchange, int64_t index) {
  const uint64_t request = flow.link->NextRequest();
  const auto number = static_cast<uint32_t>(index);
  if (exchange.gradient == nullptr) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    const Entry entry = exchange.entry.value_or(Entry());
    const auto together = entry.together.empty() ? 0 : builder.CreateVector(entry.together);
    const auto pull = wire::CreatePull(builder, number, exchange.entry.has_value(), together, entry.clock,
                                       entry.resume, entry.version);
    return flow.link->Send(request, encoder_.Finish(run_.Envelope(request), pull));
  }
  const Bytes part = PartOf(flow, index);
  const net::LentBytes bytes = exchange.gradient->Lend(part.offset, part.size);
  const uint64_t sum = config_.net.checksum ? net::PayloadChecksum(bytes.data, bytes.size) : 0;
  // What ps 0 counts it by is its last block.
  const bool is_counted = &flow == &flows_.front() && index + 1 == flow.blocks;
  const std::optional<float> loss = is_counted ? exchange.loss : std::nullopt;
  flow.link->Send(request, encoder_.Push(run_.Envelope(request), number, exchange.examples, sum, bytes,
                                         versions_.version(), loss));
}

Exchanges::Bytes Exchanges::PartOf(const Flow& flow, int64_t index) const {
  if (by_address_) {
    return {static_cast<size_t>(flow.first_block + index) * sizeof(DeviceAddress), sizeof(DeviceAddress)};
  }
  const Range block = BlockOf(flow.range, index);
  return {static_cast<size_t>(block.begin) * sizeof(float),
          static_cast<size_t>(block.size()) * sizeof(float)};
}

// Releases the gradients that are sent completely; the blocks in the links are lent on their own.
void Exchanges::DropSent() {
  const auto sent = [&](const Flow& flow) { return flow.sent >= (sent_ + 1) * flow.blocks; };
  for (; sent_ < begun_ && std::all_of(flows_.begin(), flows_.end(), sent); ++sent_) {
    ExchangeOf(sent_).hold.reset();
  }
}

void Exchanges::OnWeights(size_t ps, const net::Message& message, const wire::Envelope& envelope) {
  Flow& flow = flows_[ps];
  if (!flow.link->Answered(envelope.request())) return;  // a repeated answer
  if (!awaits(ps)) {
    throw Failure(ExitCode::kInternal,
                  fmt::format("{} sent weights that were not asked for", flow.link->name()));
  }
  const wire::Weights& weights = *envelope.body_as_Weights();
  TakeIn(flow, message, weights);
  held_us_ = std::max<int64_t>(held_us_, weights.held_us());
  if (ps == 0) {
    steps_ += weights.steps();
    global_step_ = CountIn(weights.global_step());
    if (weights.evaluate() != 0) evaluate_ = CountIn(weights.evaluate());
  }
  ++flow.answered;
  CountVersion(ps, weights);
  SendBlocks(flow);
}

void Exchanges::TakeIn(const Flow& flow, const net::Message& message, const wire::Weights& weights) {
  const Range block = BlockOf(flow.range, flow.answered % flow.blocks);
  const net::TensorView values = net::Tensor(message, weights);
  const auto bytes = static_cast<size_t>(block.size()) * sizeof(float);
  if (values.size != (by_address_ ? sizeof(DeviceAddress) : bytes)) {
    throw Failure(ExitCode::kInternal, fmt::format("{} sent {} bytes for a block of {} values",
                                                   flow.link->name(), values.size, block.size()));
  }
  if (weights.checksum() != 0 && weights.checksum() != net::PayloadChecksum(values.data, values.size)) {
    throw Failure(ExitCode::kInternal,
                  fmt::format("weights of {}, version {}, do not have the checksum made with that version "
                              "(net.checksum)",
                              flow.link->name(), weights.version()));
  }
  if (by_address_ || bytes == 0) return;
  std::memcpy(parameters_ + block.begin, values.data, bytes);
  if (on_weights_) on_weights_(parameters_, block);
}

// Takes the version of the block that was answered last.
void Exchanges::CountVersion(size_t ps, const wire::Weights& weights) {
  const Flow& flow = flows_[ps];
  const int64_t exchange = (flow.answered - 1) / flow.blocks;
  const auto gradient = [&] { return ExchangeOf(exchange).gradient != nullptr; };
  if (sync()) {
    versions_.OnAnswer(exchange, weights.version());
    if (EveryPsAnswered(exchange + 1)) versions_.OnWhole(gradient());
  } else if (ps == 0 && flow.answered % flow.blocks == 0) {
    gradient() ? staleness_.OnApplied(weights.version()) : staleness_.OnPulled(weights.version());
  }
}

bool Exchanges::EveryPsAnswered(int64_t exchanges) const {
  return std::all_of(flows_.begin(), flows_.end(),
                     [&](const Flow& flow) { return flow.answered >= exchanges * flow.blocks; });
}

bool Exchanges::CloseOldest() {
  if (open() == 0 || !EveryPsAnswered(closed_ + 1)) return false;
  ++closed_;
  return true;
}

void Exchanges::DropOpen() {
  for (Flow& flow : flows_) flow.sent = flow.answered = begun_ * flow.blocks;
  DropSent();
  closed_ = begun_;
  steps_ = evaluate_ = 0;
  staleness_.DropOpen();
}

}  // namespace dtrain
