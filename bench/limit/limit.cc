#include "bench/limit/limit.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "bench/limit/client_processes.h"
#include "bench/limit/passes.h"
#include "bench/limit/raw_socket.h"
#include "bench/limit/step.h"

namespace dtrain::bench {
namespace {

class LimitClient {
 public:
  LimitClient(const LimitPlan& plan, const std::string& endpoint);
  std::vector<float> Run();

 private:
  void Begin();
  void Push(int64_t exchange);
  bool Collect(bool wait);

  const LimitPlan plan_;
  RawSocket socket_;
  std::unique_ptr<LimitStep> step_;
  std::vector<char> header_;
  std::vector<float> parameters_;
  // One for each exchange that may be open, and one that is being written. Of many blocks one, since a step
  // begins when all are answered.
  std::vector<std::vector<float>> gradients_;
  int64_t open_ = 0;
  int64_t collected_ = 0;
};

LimitClient::LimitClient(const LimitPlan& plan, const std::string& endpoint)
    : plan_(plan),
      socket_(ZMQ_DEALER),
      header_(static_cast<size_t>(plan.request_header)),
      parameters_(static_cast<size_t>(plan.parameters)),
      gradients_(plan.layers.empty() || plan.blocks() > 1 ? 1 : static_cast<size_t>(plan.open + 1),
                 std::vector<float>(parameters_.size(), kFirstValue)) {
  if (!plan.layers.empty()) step_ = std::make_unique<LimitStep>(plan, RandomBatch(plan));
  socket_.Connect(endpoint);
}

void LimitClient::Begin() {
  RawFrame go;
  socket_.SendCopy("", 0, false);
  socket_.Receive(&go, true);
}

void LimitClient::Push(int64_t exchange) {
  std::vector<float>& gradient = gradients_[static_cast<size_t>(exchange) % gradients_.size()];
  const int64_t block = exchange % plan_.blocks();
  if (step_ != nullptr && block == 0) {
    while (plan_.blocks() > 1 && open_ > 0) Collect(true);
    step_->Run(parameters_.data(), gradient.data());
  }
  std::memcpy(header_.data(), &block, sizeof block);
  const bool payload = plan_.gradients && plan_.block > 0;
  socket_.SendCopy(header_.data(), header_.size(), payload);
  ++open_;
  if (!payload) return;
  socket_.SendLent(gradient.data() + block * plan_.block, static_cast<size_t>(plan_.block) * sizeof(float),
                   false);
}

bool LimitClient::Collect(bool wait) {
  RawFrame header;
  if (!socket_.Receive(&header, wait)) return false;
  const int64_t block = collected_++ % plan_.blocks();
  --open_;
  if (!header.more()) return true;
  RawFrame weights;
  socket_.Receive(&weights, true);
  if (!plan_.passes) return true;
  // Replies arrive in the order of the requests.
  std::memcpy(parameters_.data() + block * plan_.block, weights.data(), weights.size());
  return true;
}

std::vector<float> LimitClient::Run() {
  Begin();
  for (int64_t i = 0; i < plan_.exchanges; ++i) {
    Push(i);
    if (open_ == plan_.open) Collect(true);
    while (open_ > 0 && Collect(false)) {
    }
  }
  while (open_ > 0) Collect(true);
  return std::move(parameters_);
}

}  // namespace

std::vector<float> RunLimitClient(const LimitPlan& plan, const std::string& endpoint) {
  return LimitClient(plan, endpoint).Run();
}

namespace {

using Clock = std::chrono::steady_clock;

// Returns how many versions of a block are needed: one for each reply that may be in flight, and one that is
// being computed. With many blocks, a block that is requested again was received long ago.
size_t VersionCount(const LimitPlan& plan) {
  return plan.blocks() > 1 ? 2 : static_cast<size_t>(plan.clients * plan.open + 1);
}

// Returns null if the request has no gradient.
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

namespace {

LimitResult RunAlone(const LimitPlan& plan) {
  LimitStep step(plan, RandomBatch(plan));
  std::vector<float> parameters(static_cast<size_t>(plan.parameters), kFirstValue);
  std::vector<float> gradient = parameters;
  const Clock::time_point begun = Clock::now();
  for (int64_t i = 0; i < plan.exchanges; ++i) {
    step.Run(parameters.data(), gradient.data());
    UpdatePass(parameters.data(), gradient.data(), plan.rate, parameters.data(), plan.parameters);
  }
  return {static_cast<double>(plan.exchanges) / std::chrono::duration<double>(Clock::now() - begun).count(),
          0};
}

}  // namespace

LimitResult RunLimit(const LimitPlan& plan) {
  if (plan.alone) return RunAlone(plan);
  ClientProcesses clients(plan.clients,
                          [&plan](const std::string& endpoint) { RunLimitClient(plan, endpoint); });
  RawSocket socket(ZMQ_ROUTER);
  LimitServer server(plan, socket);
  clients.Begin(socket.Bind());
  const LimitResult result = server.Run();
  clients.Wait();
  return result;
}

}  // namespace dtrain::bench
