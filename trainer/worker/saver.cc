#include "trainer/worker/saver.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "trainer/checkpoint/range_writer.h"
#include "trainer/checkpoint/run_manifest.h"
#include "trainer/config/dump.h"
#include "trainer/model/blocks.h"
#include "trainer/optim/optimizer.h"
#include "trainer/peer/short_text.h"

namespace dtrain {
namespace {

// How often a wait looks whether it is over.
constexpr milliseconds kSlice{50};
// How often an unanswered question is asked again.
constexpr milliseconds kAskAgain{500};
// The same where there is no connection yet.
constexpr milliseconds kNotSent{10};
// Pieces of at most 1 MiB that are on their way from a ps: what this thread holds in memory.
constexpr int64_t kAhead = 8;

}  // namespace

Saver::Saver(const Config& config, const Layout& layout, std::optional<InputForm> inputs,
             CheckpointDirectory& directory, net::Transport& transport, RunId run, uint32_t term, Logger& log)
    : config_(config),
      layout_(layout),
      inputs_(std::move(inputs)),
      directory_(directory),
      run_(run),
      term_(term),
      log_(log),
      slots_(SlotNames(config)),
      channel_(transport.NewChannel()),
      ahead_(kAhead) {
  for (const std::string& address : config.cluster.ps) {
    nodes_.push_back(net::NewNodeId());
    channel_->Connect(nodes_.back(), address);
  }
  thread_ = std::thread([this] { Run(); });
}

Saver::~Saver() {
  stop_ = true;
  thread_.join();
}

void Saver::Run() {
  Outcome last;
  try {
    while (true) {
      const Order order = WaitForOrder(last);
      last = {order.number, "", ""};
      try {
        last.path = Write(order);
        directory_.Prune(config_.checkpoint.keep, directory_.ReadBest());
      } catch (const std::exception& error) {
        last.error = FailureText(error);  // of older ones, where there is a path
        log_.Error("{}", last.error);
      }
    }
  } catch (const Over&) {
  }
}

template <typename Build>
milliseconds Saver::Send(size_t ps, uint64_t request, Build&& build) {
  net::Message message = encoder_.Finish(run_.Envelope(request), build(encoder_.Begin()));
  const bool sent = channel_->Send(nodes_[ps], message) == net::SendResult::kSent;
  return sent ? kAskAgain : kNotSent;
}

// A message of this run. Throws Over.
bool Saver::Receive(milliseconds patience, size_t* ps, net::Message* message) {
  const TimePoint deadline = Clock::now() + patience;
  while (true) {
    if (stop_) throw Over();
    net::NodeId from = 0;
    const TimePoint slice = std::min(deadline, Clock::now() + kSlice);
    if (channel_->Receive(slice, &from, message) != net::ReceiveResult::kMessage) {
      if (Clock::now() >= deadline) return false;
      continue;
    }
    const wire::Envelope* envelope = net::Decode(*message);
    *ps = static_cast<size_t>(std::find(nodes_.begin(), nodes_.end(), from) - nodes_.begin());
    if (envelope != nullptr && *ps < nodes_.size() && RunIdOf(*envelope) == run_) return true;
  }
}

Saver::Order Saver::WaitForOrder(const Outcome& last) {
  uint64_t request = 0;
  while (true) {
    const milliseconds patience = Send(0, ++request, [&](auto& builder) {
      const auto path = last.path.empty() ? 0 : builder.CreateString(last.path);
      return wire::CreateAskSave(builder, term_, last.number, path,
                                 builder.CreateString(ShortText(last.error)));
    });
    size_t ps = 0;
    net::Message message;
    while (Receive(patience, &ps, &message)) {
      const wire::SaveOrder* order = net::Decode(message)->body_as_SaveOrder();
      if (order == nullptr || order->number() <= last.number) continue;
      return {order->number(),
              static_cast<int64_t>(order->step()),
              order->positions() == nullptr ? "" : order->positions()->str(),
              order->best(),
              order->loss(),
              order->accuracy()};
    }
  }
}

std::string Saver::Write(const Order& order) {
  const std::string temporary = directory_.BeginSave(order.step);
  try {
    std::vector<std::vector<uint64_t>> checksums;
    for (size_t ps = 0; ps < nodes_.size(); ++ps) checksums.push_back(WriteShard(order, ps, temporary));
    SavedMoment moment{run_.id, order.step, order.positions};
    if (order.best) {
      moment.best = true;
      moment.loss = order.loss;
      moment.accuracy = order.accuracy;
    }
    moment.inputs = inputs_;
    directory_.Seal(temporary, RunManifest(config_, layout_, slots_, checksums, moment), DumpConfig(config_));
    Confirm(order);
    const std::string path = directory_.Publish(temporary);
    if (order.best) NoteBest(path);
    return path;
  } catch (...) {
    directory_.Abandon(temporary);
    throw;
  }
}

// The checkpoint has its name, whatever becomes of this.
void Saver::NoteBest(const std::string& path) {
  try {
    directory_.WriteBest(path.substr(path.rfind('/') + 1));
  } catch (const std::exception& error) {
    log_.Warning("{} is the best checkpoint so far, and that could not be noted: {}", path,
                 FailureText(error));
  }
}

std::vector<uint64_t> Saver::WriteShard(const Order& order, size_t ps, const std::string& directory) {
  RangeWriter writer(layout_, static_cast<int>(ps), static_cast<int64_t>(slots_.size()), directory);
  asked_ = 0;
  std::fill(ahead_.begin(), ahead_.end(), std::nullopt);
  for (int64_t piece = 0; piece < writer.piece_count(); ++piece) {
    const net::Message message = ReadPiece(order, ps, piece, writer.piece_count());
    writer.Add(net::Tensor(message, *net::Decode(message)->body_as_CutPiece()).data);
  }
  return writer.Finish();
}

net::Message Saver::ReadPiece(const Order& order, size_t ps, int64_t first, int64_t count) {
  const TimePoint begun = Clock::now();
  const auto slot = [&](int64_t piece) -> auto& { return ahead_[static_cast<size_t>(piece % kAhead)]; };
  milliseconds patience = kAskAgain;
  const auto ask = [&](int64_t piece) {
    patience = Send(ps, static_cast<uint64_t>(piece) + 1, [&](auto& builder) {
      return wire::CreateReadCut(builder, order.number, static_cast<uint64_t>(piece));
    });
  };
  while (!slot(first)) {
    for (; asked_ < std::min(count, first + kAhead); ++asked_) ask(asked_);
    size_t from = 0;
    net::Message message;
    if (!Receive(patience, &from, &message)) {
      if (SecondsSince(begun) * 1000 > static_cast<double>(config_.net.timeout_ms)) {
        throw PeerLost("{}: no piece of the checkpoint of step {} in {} ms (net.timeout_ms). See its log.",
                       TaskNameAndAddress(config_.cluster, {Role::kPs, static_cast<int>(ps)}), order.step,
                       config_.net.timeout_ms);
      }
      ask(first);
      continue;
    }
    const wire::CutPiece* piece = net::Decode(message)->body_as_CutPiece();
    if (piece == nullptr || from != ps || piece->number() != order.number) continue;
    const auto number = static_cast<int64_t>(piece->piece());
    if (number < first || number >= asked_) continue;
    const Range elements = RangePieceAt(layout_.ps[ps], static_cast<int64_t>(slots_.size()), number).elements;
    const net::TensorView values = net::Tensor(message, *piece);
    const bool whole = values.size == static_cast<size_t>(elements.size()) * sizeof(float);
    const uint64_t sum = piece->checksum();
    if (whole && (sum == 0 || sum == net::PayloadChecksum(values.data, values.size))) {
      slot(number) = std::move(message);
    }
  }
  return *std::exchange(slot(first), std::nullopt);
}

void Saver::Confirm(const Order& order) {
  const TimePoint begun = Clock::now();
  while (SecondsSince(begun) * 1000 < static_cast<double>(config_.net.timeout_ms)) {
    Send(0, order.number,
         [&](auto& builder) { return wire::CreateConfirmSave(builder, order.number, term_); });
    size_t ps = 0;
    net::Message message;
    while (Receive(kAskAgain, &ps, &message)) {
      const wire::Envelope& envelope = *net::Decode(message);
      if (ps != 0 || envelope.request() != order.number) continue;
      if (envelope.body_type() == wire::Body::Ack) return;
      if (const wire::Refuse* refuse = envelope.body_as_Refuse()) {
        throw Failure(ExitCode::kInternal, "ps 0 took the order back: " + refuse->text()->str());
      }
    }
  }
  throw PeerLost("ps 0 has not confirmed the checkpoint of step {} in {} ms (net.timeout_ms).", order.step,
                 config_.net.timeout_ms);
}

}  // namespace dtrain
