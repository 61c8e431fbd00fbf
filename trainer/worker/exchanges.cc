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

Exchanges::Exchanges(const Config& config, const Layout& layout, const std::vector<Conversation*>& links,
                     int worker)
    : config_(config),
      ring_(static_cast<size_t>(config.train.in_flight)),
      staleness_(config.train.in_flight),
      table_(layout.table ? &*layout.table : nullptr),
      flat_(layout.size),
      left_out_(config.net.compress.push == net::Compression::kNone ? 0 : static_cast<size_t>(layout.size)),
      rounding_(static_cast<uint64_t>(worker)) {
  for (const Variable& variable : layout.variables) {
    variables_.push_back({variable.offset, variable.offset + variable.size()});
  }
  int64_t in_ranges = 0, of_rows = 0;
  for (size_t ps = 0; ps < links.size(); ++ps) {
    Flow flow;
    flow.link = links[ps];
    flow.range = layout.ps[ps];
    flow.blocks = BlocksOf(layout, ps);
    flow.range_blocks = RangeBlocksOf(layout, ps);
    flow.first_in_range = std::exchange(in_ranges, in_ranges + flow.range_blocks);
    flow.first_of_rows = std::exchange(of_rows, of_rows + flow.blocks - flow.range_blocks);
    flow.window = WindowOf(config.train, layout, ps);
    flows_.push_back(flow);
  }
}

int64_t Exchanges::WindowOf(const TrainConfig& train, const Layout& layout, size_t ps) {
  return MaxOpenBlocks(train, BlocksOf(layout, ps));
}

void Exchanges::Announce(const net::LentBuffer& buffer, uint32_t examples) {
  Exchange push;
  push.gradient = &buffer;
  push.hold = buffer.KeepLent();
  push.examples = examples;
  awaited_ = variables_;
  announced_ = true;
  Begin(std::move(push));
}

void Exchanges::Ready(Range elements) {
  const auto is_ready = [&](Range variable) {
    return elements.begin <= variable.begin && variable.end <= elements.end;
  };
  awaited_.erase(std::remove_if(awaited_.begin(), awaited_.end(), is_ready), awaited_.end());
  for (Flow& flow : flows_) SendBlocks(flow);
}

void Exchanges::Push(const net::LentBuffer& buffer, uint32_t examples, const net::PushedLoss& loss,
                     ExchangeRows rows) {
  staleness_.OnPushed();
  --steps_;
  if (std::exchange(announced_, false)) {
    DT_CHECK(rows.of == nullptr && rows.asks == nullptr);
    ExchangeOf(begun_ - 1).loss = loss;
    for (Flow& flow : flows_) SendBlocks(flow);
    return;
  }
  Exchange push;
  push.gradient = &buffer;
  push.hold = buffer.KeepLent();
  push.examples = examples;
  push.loss = loss;
  push.rows = rows;
  Begin(std::move(push));
}

void Exchanges::Pull(std::optional<Entry> entry, ExchangeRows rows) {
  DT_CHECK(open() == 0 || table_ != nullptr, open());
  Exchange pull;
  pull.rows = rows;
  pull.entry = std::move(entry);
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
  for (int64_t block = 0; block < table_->block_count(); ++block) {
    const int64_t rows = asks.KeysIn(block).size;
    // A message has the values of one batch and the keys of a later one; both are checked.
    const int64_t row_bytes =
        table_->width() * static_cast<int64_t>(sizeof(float)) + static_cast<int64_t>(table_->key_bytes());
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
    SendBlock(flow, ExchangeOf(flow.sent / flow.blocks), NextSent(flow));
    ++flow.sent;
  }
  DropSent();
}

// Whether the next block is computed.
bool Exchanges::MaySend(const Flow& flow) const {
  if (!announced_ || flow.sent < (begun_ - 1) * flow.blocks) return true;
  if (flow.sent + 1 == begun_ * flow.blocks) return false;
  const Range block = BlockOf(flow.range, NextSent(flow));
  return std::none_of(awaited_.begin(), awaited_.end(), [&](Range awaited) {
    return std::max(awaited.begin, block.begin) < std::min(awaited.end, block.end);
  });
}

void Exchanges::SendBlock(const Flow& flow, const Exchange& exchange, int64_t index) {
  const uint64_t request = flow.link->NextRequest();
  const auto number = static_cast<uint32_t>(index);
  const bool of_rows = IsOfRows(flow, index);
  KeyedBatch* const asks = of_rows ? exchange.rows.asks : nullptr;
  const int64_t of_all = RowBlock(flow, index);
  const auto keys = asks == nullptr ? 0u : static_cast<uint32_t>(asks->KeysIn(of_all).size);
  if (asks != nullptr) asks->RequestOf(of_all) = request;
  if (exchange.gradient == nullptr) {
    const Entry entry = exchange.entry.value_or(Entry());
    const net::PullHead head{
        number, exchange.entry.has_value(), entry.together,        entry.clock, entry.resume, entry.version,
        keys,   exchange.rows.read,         exchange.rows.snapshot};
    net::PushedRows asked;
    const net::LentBytes rows = of_rows ? RowsOf(exchange, of_all, request, &asked) : net::LentBytes();
    return flow.link->Send(request, encoder_.Pull(run_.Envelope(request), head, rows));
  }
  net::PushedRows rows;
  if (of_rows) rows = {exchange.rows.of->RequestOf(of_all), keys};
  const net::LentBytes bytes = GradientOf(flow, exchange, index, request, &rows);
  const uint64_t sum = config_.net.checksum ? net::PayloadChecksum(bytes.data, bytes.size) : 0;
  // What ps 0 counts it by is its last block.
  const bool is_counted = &flow == &flows_.front() && (flow.sent + 1) % flow.blocks == 0;
  const net::PushedLoss loss = is_counted ? exchange.loss : net::PushedLoss();
  flow.link->Send(request, encoder_.Push(run_.Envelope(request), number, exchange.examples, sum, bytes,
                                         versions_.version(), loss, rows,
                                         FormOf(config_.net.compress.push, flow, index)));
}

net::LentBytes Exchanges::GradientOf(const Flow& flow, const Exchange& exchange, int64_t index,
                                     uint64_t request, net::PushedRows* rows) {
  if (IsOfRows(flow, index)) return RowsOf(exchange, RowBlock(flow, index), request, rows);
  if (FormOf(config_.net.compress.push, flow, index) != net::Compression::kNone) {
    return Compressed(exchange.gradient->floats(), BlockOf(flow.range, index));
  }
  const Bytes part = PartOf(flow, index);
  return exchange.gradient->Lend(part.offset, part.size);
}

net::LentBytes Exchanges::Compressed(const float* gradient, Range block) {
  const net::Compression form = config_.net.compress.push;
  const size_t bytes = net::CompressedBytes(form, block.size());
  const net::LentBuffer& buffer = compressed_.Free(bytes);
  net::Compress(form, gradient + block.begin, left_out_.data() + block.begin, block.size(),
                reinterpret_cast<std::byte*>(buffer.floats()));
  bytes_saved_ += block.size() * static_cast<int64_t>(sizeof(float)) - static_cast<int64_t>(bytes);
  return buffer.Lend(0, bytes);
}

// The gradient of the rows in a block, and behind it the keys that are asked for. A copy, because a block's
// rows and its keys are one frame.
net::LentBytes Exchanges::RowsOf(const Exchange& exchange, int64_t block, uint64_t request,
                                 net::PushedRows* asked) {
  const auto width = static_cast<size_t>(table_->width());
  const KeyedBatch* const of = exchange.gradient == nullptr ? nullptr : exchange.rows.of;
  const KeyedBatch* const asks = exchange.rows.asks;
  const KeySpan keys = asks == nullptr ? KeySpan() : asks->KeysIn(block);
  const size_t values = of == nullptr ? 0 : static_cast<size_t>(of->KeysIn(block).size) * width;
  const net::Compression form = net::FormOfRows(config_.net.compress.push);
  const size_t value_bytes = net::CompressedBytes(form, static_cast<int64_t>(values));
  const auto count = static_cast<size_t>(keys.size);
  const net::LentBuffer& buffer = sent_rows_.Free(value_bytes + MaxKeyBytes(count, *table_));
  auto* const bytes = reinterpret_cast<std::byte*>(buffer.floats());
  if (values > 0) {
    const float* const rows =
        exchange.gradient->floats() + flat_ + static_cast<size_t>(of->FirstIn(block)) * width;
    form == net::Compression::kNone
        ? static_cast<void>(std::copy_n(rows, values, buffer.floats()))
        : net::CompressAtRandom(form, rows, rounding_.Stream(request).Bits(static_cast<uint64_t>(block)),
                                static_cast<int64_t>(values), bytes);
  }
  const size_t key_bytes = EncodeKeys(keys, table_->RangeOf(block), bytes + value_bytes);
  asked->key_bytes = static_cast<uint32_t>(key_bytes);
  bytes_saved_ += static_cast<int64_t>(values * sizeof(float) + count * table_->key_bytes()) -
                  static_cast<int64_t>(value_bytes + key_bytes);
  return buffer.Lend(0, value_bytes + key_bytes);
}

Exchanges::Bytes Exchanges::PartOf(const Flow& flow, int64_t index) const {
  if (by_address_) {
    return {static_cast<size_t>(flow.first_in_range + index) * sizeof(DeviceAddress), sizeof(DeviceAddress)};
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
  if (Answered(flow).rows.snapshot != 0) return TakeSnapshot(flow, message, weights);
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

// These say nothing of the worker's own weights.
void Exchanges::TakeSnapshot(Flow& flow, const net::Message& message, const wire::Weights& weights) {
  weights.gone() ? void(gone_ = true) : TakeIn(flow, message, weights);
  ++flow.answered;
  SendBlocks(flow);
}

// The bytes of the block that is answered next.
size_t Exchanges::BytesAsked(const Flow& flow, int64_t block) {
  if (TakesAddress(flow)) return sizeof(DeviceAddress);
  if (!IsOfRows(flow, block)) return static_cast<size_t>(BlockOf(flow.range, block).size()) * sizeof(float);
  const KeyedBatch* const asks = Answered(flow).rows.asks;
  const int64_t rows = asks == nullptr ? 0 : asks->KeysIn(RowBlock(flow, block)).size;
  return static_cast<size_t>(rows * table_->width()) * sizeof(float);
}

// Where they go.
float* Exchanges::PlaceOf(const Flow& flow, int64_t block) {
  const Exchange& exchange = Answered(flow);
  KeyedBatch* const asks = exchange.rows.asks;
  float* const flat = exchange.rows.snapshot == 0 ? parameters_ : exchange.rows.into;
  float* const parameters = asks == nullptr ? flat : asks->parameters();
  if (!IsOfRows(flow, block)) return parameters + BlockOf(flow.range, block).begin;
  return parameters + flat_ + asks->FirstIn(RowBlock(flow, block)) * table_->width();
}

void Exchanges::TakeIn(const Flow& flow, const net::Message& message, const wire::Weights& weights) {
  const int64_t block = NextAnswered(flow);
  const net::TensorView values = net::Tensor(message, weights);
  const size_t bytes = BytesAsked(flow, block);
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
  float* const place = PlaceOf(flow, block);
  if (form == net::Compression::kNone) {
    std::memcpy(place, values.data, bytes);
  } else {
    net::Decompress(form, values.data, values.size, static_cast<int64_t>(bytes / sizeof(float)), place);
  }
  const bool own = Answered(flow).rows.snapshot == 0;
  if (on_weights_ && own) on_weights_(parameters_, BlockOf(flow.range, block));
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
  announced_ = false;
  steps_ = evaluate_ = 0;
  gone_ = false;
  staleness_.DropOpen();
  std::fill(left_out_.begin(), left_out_.end(), 0.0f);  // it is of weights that are gone
}

}  // namespace dtrain
