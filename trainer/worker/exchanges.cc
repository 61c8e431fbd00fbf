#include "trainer/worker/exchanges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/fault_point.h"
#include "trainer/device/device_store.h"
#include "trainer/model/layout.h"
#include "trainer/peer/lease_message.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {

Exchanges::Exchanges(const Config& config, const Layout& layout, const std::vector<Conversation*>& links,
                     int worker)
    : config_(config),
      layout_(layout),
      ring_(static_cast<size_t>(config.train.in_flight)),
      staleness_(config.train.in_flight),
      gradients_(config.net.compress.push, layout, worker) {
  int64_t in_ranges = 0, of_rows = 0;
  for (size_t ps = 0; ps < links.size(); ++ps) {
    const int64_t blocks = BlocksOf(layout, ps), range_blocks = RangeBlocksOf(layout, ps);
    flows_.push_back({links[ps], layout.ps[ps], blocks, range_blocks, in_ranges, of_rows,
                      WindowOf(config.train, layout, ps)});
    in_ranges += range_blocks;
    of_rows += blocks - range_blocks;
  }
}

int64_t Exchanges::WindowOf(const TrainConfig& train, const Layout& layout, size_t ps) {
  return MaxOpenBlocks(train, BlocksOf(layout, ps));
}

void Exchanges::Announce(const net::LentBuffer& buffer, uint32_t examples, std::optional<double> weight,
                         const std::vector<uint32_t>& taken) {
  awaited_.clear();
  for (const Variable& variable : layout_.variables) {
    awaited_.push_back({variable.offset, variable.offset + variable.size()});
  }
  announced_ = true;
  Begin({&buffer, buffer.KeepLent(), examples, {std::nullopt, weight}, {}, {}, taken});
}

void Exchanges::Ready(Range elements) {
  const auto is_ready = [&](Range variable) {
    return elements.begin <= variable.begin && variable.end <= elements.end;
  };
  awaited_.erase(std::remove_if(awaited_.begin(), awaited_.end(), is_ready), awaited_.end());
  for (Flow& flow : flows_) SendBlocks(flow);
}

void Exchanges::Push(const net::LentBuffer& buffer, uint32_t examples, const net::PushedLoss& loss,
                     ExchangeRows rows, const std::vector<uint32_t>& taken) {
  staleness_.OnPushed();
  --steps_;
  if (std::exchange(announced_, false)) {
    DT_CHECK(rows.of == nullptr && rows.asks == nullptr);
    ExchangeOf(begun_ - 1).loss = loss;
    for (Flow& flow : flows_) SendBlocks(flow);
    return;
  }
  Begin({&buffer, buffer.KeepLent(), examples, loss, {}, rows, taken});
}

void Exchanges::Pull(std::optional<Entry> entry, ExchangeRows rows) {
  DT_CHECK(open() == 0 || layout_.table.has_value(), open());
  Begin({nullptr, {}, 0, {}, std::move(entry), rows});
}

void Exchanges::Leave() {
  DT_CHECK(open() == 0, open());
  Exchange pull;
  pull.leaves = true;
  Begin(std::move(pull));
}

void Exchanges::Begin(Exchange exchange) {
  DT_CHECK(open() < static_cast<int64_t>(ring_.size()), open());
  if (exchange.rows.asks != nullptr) CheckSize(*exchange.rows.asks);
  ExchangeOf(begun_) = std::move(exchange);
  ++begun_;
  for (Flow& flow : flows_) SendBlocks(flow);
}

// The rows of a block are one message, and a transport ends the connection over one that is too large.
void Exchanges::CheckSize(const KeyedBatch& asks) const {
  for (int64_t block = 0; block < layout_.table->block_count(); ++block) {
    const int64_t rows = asks.KeysIn(block).size;
    // A message has the values of one batch and the keys of a later one; both are checked.
    const int64_t row_bytes = layout_.table->width() * static_cast<int64_t>(sizeof(float)) +
                              static_cast<int64_t>(layout_.table->key_bytes());
    const int64_t bytes = rows * row_bytes;
    constexpr int64_t kRoom = 1 << 10;  // for what is around them
    if (bytes + kRoom <= config_.net.max_message_mb << 20) continue;
    throw UserError(
        "train.batch_size = {}: a batch has {} rows of the table in one message to a ps, of {} "
        "bytes, and net.max_message_mb = {}. Use a smaller batch or more ps, or raise net.max_message_mb for "
        "all tasks.",
        config_.train.batch_size, rows, bytes, config_.net.max_message_mb);
  }
}

// Sends blocks of the open exchanges, in order, while the window has room.
void Exchanges::SendBlocks(Flow& flow) {
  while (flow.sent < begun_ * flow.blocks && flow.sent - flow.answered < flow.window && MaySend(flow)) {
    SendBlock(flow, ExchangeOf(flow.sent / flow.blocks), flow.NextSent());
    ++flow.sent;
  }
  DropSent();
}

// Whether the next block is computed.
bool Exchanges::MaySend(const Flow& flow) const {
  if (!announced_ || flow.sent < (begun_ - 1) * flow.blocks) return true;
  if (flow.sent + 1 == begun_ * flow.blocks) return false;
  const Range block = BlockOf(flow.range, flow.NextSent());
  return std::none_of(awaited_.begin(), awaited_.end(), [&](Range awaited) {
    return std::max(awaited.begin, block.begin) < std::min(awaited.end, block.end);
  });
}

void Exchanges::SendBlock(const Flow& flow, const Exchange& exchange, int64_t index) {
  const FaultScope fault("step.block");
  const uint64_t request = flow.link->NextRequest();
  const auto number = static_cast<uint32_t>(index);
  const bool of_rows = flow.IsOfRows(index);
  const int64_t of_all = flow.RowBlock(index);
  net::PushedRows rows;
  if (KeyedBatch* const asks = of_rows ? exchange.rows.asks : nullptr) {
    asks->RequestOf(of_all) = request;
    rows.keys = static_cast<uint32_t>(asks->KeysIn(of_all).size);
  }
  const net::LentBytes tensor = TensorOf(flow, exchange, index, request, &rows.key_bytes);
  if (exchange.gradient == nullptr) {
    const Entry entry = exchange.entry.value_or(Entry());
    const net::PullHead head{number,
                             exchange.entry.has_value(),
                             entry.together,
                             entry.clock,
                             entry.resume,
                             entry.version,
                             rows.keys,
                             exchange.rows.read,
                             exchange.rows.snapshot,
                             exchange.leaves};
    return flow.link->Send(request, encoder_.Pull(run_.Envelope(request), head, tensor));
  }
  if (of_rows) rows.of = exchange.rows.of->RequestOf(of_all);
  const uint64_t sum = config_.net.checksum ? net::PayloadChecksum(tensor.data, tensor.size) : 0;
  // What ps 0 counts it by is its last block.
  const bool is_counted = &flow == &flows_.front() && (flow.sent + 1) % flow.blocks == 0;
  net::PushedLoss loss = exchange.loss;
  if (!is_counted) loss.mean.reset();
  const auto ps = static_cast<size_t>(&flow - flows_.data());
  const bool empty = !exchange.taken.empty() && flow.sent % flow.blocks < exchange.taken[ps];
  flow.link->Send(request, encoder_.Push(run_.Envelope(request), number, exchange.examples, sum, tensor,
                                         versions_.version(), loss, rows,
                                         FormOf(config_.net.compress.push, flow, index), empty));
}

// What goes with a block: its part of the gradient, and of a table the keys that are asked for. A gradient of
// no rows has no values, so that what compression has left out before stays for the next.
net::LentBytes Exchanges::TensorOf(const Flow& flow, const Exchange& exchange, int64_t index,
                                   uint64_t request, uint32_t* key_bytes) {
  if (flow.IsOfRows(index)) {
    return gradients_.Rows(exchange.gradient, exchange.examples == 0 ? nullptr : exchange.rows.of,
                           exchange.rows.asks, flow.RowBlock(index), request, key_bytes);
  }
  if (exchange.gradient == nullptr) return {};
  if (!by_address_ && exchange.examples == 0) return {};
  if (!by_address_) return gradients_.Block(*exchange.gradient, BlockOf(flow.range, index));
  const auto of_all = static_cast<size_t>(flow.first_in_range + index);
  return exchange.gradient->Lend(of_all * sizeof(DeviceAddress), sizeof(DeviceAddress));
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
  if (Answered(flow).rows.snapshot != 0) {  // it says nothing of the worker's own weights
    weights.gone() ? void(gone_ = true) : TakeIn(flow, message, weights);
    ++flow.answered;
    return SendBlocks(flow);
  }
  TakeIn(flow, message, weights);
  held_us_ = std::max<int64_t>(held_us_, weights.held_us());
  if (ps == 0) {
    steps_ += weights.steps();
    global_step_ = CountIn(weights.global_step());
    if (weights.evaluate() != 0) evaluate_ = CountIn(weights.evaluate());
    if (weights.lease_batches() != 0) lease_ = LeaseIn(weights);
  }
  ++flow.answered;
  CountVersion(ps, weights);
  SendBlocks(flow);
}

// Where the block that is answered next lies in the flat vector, or in the rows of the batch behind it.
Range Exchanges::PlaceOf(const Flow& flow, int64_t block) {
  if (!flow.IsOfRows(block)) return BlockOf(flow.range, block);
  const KeyedBatch* const asks = Answered(flow).rows.asks;
  if (asks == nullptr) return {};
  const int64_t width = layout_.table->width(), of_all = flow.RowBlock(block);
  const int64_t begin = layout_.size + asks->FirstIn(of_all) * width;
  return {begin, begin + asks->KeysIn(of_all).size * width};
}

// What the answer is for.
float* Exchanges::Destination(const Flow& flow) {
  const ExchangeRows& rows = Answered(flow).rows;
  if (rows.asks != nullptr) return rows.asks->parameters();
  return rows.snapshot == 0 ? parameters_ : rows.into;
}

void Exchanges::TakeIn(const Flow& flow, const net::Message& message, const wire::Weights& weights) {
  const int64_t block = flow.NextAnswered();
  const net::TensorView values = net::Tensor(message, weights);
  const Range place = PlaceOf(flow, block);
  const size_t bytes =
      TakesAddress(flow) ? sizeof(DeviceAddress) : static_cast<size_t>(place.size()) * sizeof(float);
  const auto form = static_cast<net::Compression>(weights.form());
  if (form != net::Compression::kNone && form != FormOf(config_.net.compress.pull, flow, block)) {
    throw Failure(ExitCode::kInternal,
                  fmt::format("{} sent weights as {}, and net.compress.pull = {}", flow.link->name(),
                              net::CompressionName(form), net::CompressionName(config_.net.compress.pull)));
  }
  if (values.size != net::CompressedBytes(form, static_cast<int64_t>(bytes / sizeof(float)))) {
    throw Failure(ExitCode::kInternal, fmt::format("{} sent {} bytes for a block of {} bytes",
                                                   flow.link->name(), values.size, bytes));
  }
  if (weights.checksum() != 0 && weights.checksum() != net::PayloadChecksum(values.data, values.size)) {
    throw Failure(ExitCode::kInternal,
                  fmt::format("weights of {}, version {}, do not have the checksum made with that version "
                              "(net.checksum)",
                              flow.link->name(), weights.version()));
  }
  if (TakesAddress(flow) || bytes == 0) return;
  float* const to = Destination(flow) + place.begin;
  if (form == net::Compression::kNone) {
    std::memcpy(to, values.data, bytes);
  } else {
    net::Decompress(form, values.data, values.size, place.size(), to);
  }
  const bool own = Answered(flow).rows.snapshot == 0;
  if (on_weights_ && own) on_weights_(parameters_, BlockOf(flow.range, block));
}

// Takes the version of the block that was answered last.
void Exchanges::CountVersion(size_t ps, const wire::Weights& weights) {
  const Flow& flow = flows_[ps];
  const int64_t exchange = (flow.answered - 1) / flow.blocks;
  const auto gradient = [&] { return ExchangeOf(exchange).gradient != nullptr; };
  if (config_.train.mode == TrainMode::kSync) {
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
  announced_ = false;
  steps_ = evaluate_ = 0;
  lease_.reset();
  gone_ = false;
  staleness_.DropOpen();
  gradients_.Forget();
}

}  // namespace dtrain
