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

// Null: a request without one.
const AnyFloat* GradientIn(const RawFrame& frame) {
  return frame.size() == 0 ? nullptr : static_cast<const AnyFloat*>(frame.data());
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

const float* LimitServer::Version(int64_t block, const AnyFloat* gradient) {
  size_t& current = current_[static_cast<size_t>(block)];
  const int64_t offset = block * plan_.block;
  const float* const weights = versions_[current].data() + offset;
  if (gradient == nullptr || !plan_.passes) return weights;
  current = (current + 1) % versions_.size();
  float* const updated = versions_[current].data() + offset;
  UpdatePass(weights, gradient, plan_.rate, updated, plan_.block);
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

void LimitServer::Take(Request* request) {
  socket_.Receive(&request->client, true);
  socket_.Receive(&request->header, true);
  if (request->header.more()) socket_.Receive(&request->gradient, true);
  bytes_ += request->header.size() + request->gradient.size();
}

void LimitServer::Reply(Request& request, const float* weights) {
  const bool payload = plan_.block > 0;
  socket_.SendBack(request.client, true);
  socket_.SendCopy(reply_header_.data(), reply_header_.size(), payload);
  bytes_ += reply_header_.size();
  if (!payload) return;
  const size_t size = static_cast<size_t>(plan_.block) * sizeof(float);
  socket_.SendLent(weights, size, false);
  bytes_ += size;
}

void LimitServer::Answer() {
  if (plan_.rounds) return AnswerRound();
  Request request;
  Take(&request);
  int64_t block = 0;
  std::memcpy(&block, request.header.data(), sizeof block);
  Reply(request, plan_.block > 0 ? Version(block, GradientIn(request.gradient)) : nullptr);
}

void LimitServer::AnswerRound() {
  std::vector<Request> requests(static_cast<size_t>(plan_.clients));
  for (Request& request : requests) Take(&request);
  sum_.resize(static_cast<size_t>(plan_.block));
  const AnyFloat* sum = GradientIn(requests[0].gradient);
  for (size_t i = 1; i < requests.size(); ++i) {
    AddPass(sum, GradientIn(requests[i].gradient), sum_.data(), plan_.block);
    sum = sum_.data();
  }
  const float* const weights = Version(0, sum);
  for (Request& request : requests) Reply(request, weights);
}

LimitResult LimitServer::Run() {
  AwaitClients();
  const int64_t together = plan_.rounds ? plan_.clients : 1;
  for (int64_t i = 0; i < plan_.warm_up; i += together) Answer();
  bytes_ = 0;
  const Clock::time_point begun = Clock::now();
  const int64_t exchanges = plan_.clients * plan_.exchanges - plan_.warm_up;
  for (int64_t i = 0; i < exchanges; i += together) Answer();
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  const auto count = static_cast<double>(exchanges);
  return {count / seconds, static_cast<double>(bytes_) / count};
}

}  // namespace dtrain::bench
