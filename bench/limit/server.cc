#include "bench/limit/server.h"

#include <chrono>
#include <cstring>

#include "bench/limit/passes.h"

namespace dtrain::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Replies that may be on their way, and the version that is made meanwhile. Of many blocks, one that is asked
// for again was received long ago.
size_t VersionCount(const LimitPlan& plan) {
  return plan.blocks() > 1 ? 2 : static_cast<size_t>(plan.clients * plan.open + 1);
}

}  // namespace

LimitServer::LimitServer(const LimitPlan& plan, RawSocket& socket)
    : plan_(plan),
      socket_(socket),
      reply_header_(static_cast<size_t>(plan.reply_header)),
      versions_(VersionCount(plan), std::vector<float>(static_cast<size_t>(plan.parameters), kFirstValue)),
      current_(static_cast<size_t>(plan.blocks())) {}

void LimitServer::AwaitClients() {
  std::vector<RawFrame> clients(static_cast<size_t>(plan_.clients));
  for (RawFrame& client : clients) {
    RawFrame hello;
    socket_.Receive(&client, true);
    socket_.Receive(&hello, true);
  }
  for (RawFrame& client : clients) {
    socket_.SendBack(client, true);
    socket_.SendCopy("", 0, false);
  }
}

const float* LimitServer::Version(int64_t block, const RawFrame& gradient) {
  size_t& current = current_[static_cast<size_t>(block)];
  const int64_t offset = block * plan_.block;
  const float* const weights = versions_[current].data() + offset;
  if (gradient.size() == 0 || !plan_.passes) return weights;
  current = (current + 1) % versions_.size();
  float* const updated = versions_[current].data() + offset;
  UpdatePass(weights, static_cast<const AnyFloat*>(gradient.data()), plan_.rate, updated, plan_.block);
  return updated;
}

std::vector<float> LimitServer::Weights() const {
  std::vector<float> weights;
  for (size_t block = 0; block < current_.size(); ++block) {
    const auto begin = versions_[current_[block]].begin() + static_cast<int64_t>(block) * plan_.block;
    weights.insert(weights.end(), begin, begin + plan_.block);
  }
  return weights;
}

void LimitServer::Answer() {
  RawFrame client;
  RawFrame header;
  RawFrame gradient;
  socket_.Receive(&client, true);
  socket_.Receive(&header, true);
  if (header.more()) socket_.Receive(&gradient, true);
  int64_t block = 0;
  std::memcpy(&block, header.data(), sizeof block);
  const bool payload = plan_.block > 0;
  const float* const weights = payload ? Version(block, gradient) : nullptr;
  socket_.SendBack(client, true);
  socket_.SendCopy(reply_header_.data(), reply_header_.size(), payload);
  bytes_ += header.size() + gradient.size() + reply_header_.size();
  if (!payload) return;
  const size_t size = static_cast<size_t>(plan_.block) * sizeof(float);
  socket_.SendLent(weights, size, false);
  bytes_ += size;
}

LimitResult LimitServer::Run() {
  AwaitClients();
  for (int64_t i = 0; i < plan_.warm_up; ++i) Answer();
  bytes_ = 0;
  const Clock::time_point begun = Clock::now();
  const int64_t exchanges = plan_.clients * plan_.exchanges - plan_.warm_up;
  for (int64_t i = 0; i < exchanges; ++i) Answer();
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  const auto count = static_cast<double>(exchanges);
  return {count / seconds, static_cast<double>(bytes_) / count};
}

}  // namespace dtrain::bench
