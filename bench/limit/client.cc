#include "bench/limit/client.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

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
  // One for each exchange that may be open, and the one that is written meanwhile.
  std::vector<std::vector<float>> gradients_;
  int64_t open_ = 0;
  int64_t collected_ = 0;
};

LimitClient::LimitClient(const LimitPlan& plan, const std::string& endpoint)
    : plan_(plan),
      socket_(ZMQ_DEALER),
      header_(static_cast<size_t>(plan.request_header)),
      parameters_(static_cast<size_t>(plan.parameters)),
      gradients_(plan.layers.empty() ? 1 : static_cast<size_t>(plan.open + 1),
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
  if (step_ != nullptr) step_->Run(parameters_.data(), gradient.data());
  const int64_t block = exchange % plan_.blocks();
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
  // Replies come in the order of the requests.
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

}  // namespace dtrain::bench
