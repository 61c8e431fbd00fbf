#include "bench/limit/rows.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "bench/limit/client_processes.h"

namespace dtrain::bench {
namespace {

int BitsBelow(uint64_t count) {
  int bits = 0;
  while ((count - 1) >> bits != 0) ++bits;
  return bits;
}

}  // namespace

// The features of a batch, each with its place, sorted by a radix sort from the least significant digit on.
void RowBatch::Sort(int64_t count, int key_bits) {
  const int max_digit = count < 2048 ? 8 : 12;
  const int passes = (key_bits + max_digit - 1) / max_digit;
  const int digit = (key_bits + passes - 1) / passes;
  const uint64_t mask = (uint64_t{1} << digit) - 1;
  sorted_.resize(static_cast<size_t>(count));
  for (int pass = 0, shift = 32; pass < passes; ++pass, shift += digit) {
    counts_.assign(mask + 1, 0);
    for (const uint64_t number : numbers_) ++counts_[number >> shift & mask];
    uint32_t place = 0;
    for (uint32_t& one : counts_) place += std::exchange(one, place);
    for (const uint64_t number : numbers_) sorted_[counts_[number >> shift & mask]++] = number;
    numbers_.swap(sorted_);
  }
}

void RowBatch::Fill(const uint32_t* ids, int64_t count, const RowPlan& plan) {
  numbers_.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    numbers_[static_cast<size_t>(i)] = uint64_t{ids[i]} << 32 | static_cast<uint64_t>(i);
  }
  Sort(count, BitsBelow(static_cast<uint64_t>(plan.rows)));
  keys_.resize(static_cast<size_t>(count));
  places_.resize(static_cast<size_t>(count));
  size_t found = 0;
  for (const uint64_t number : numbers_) {
    const auto key = static_cast<uint32_t>(number >> 32);
    found += found == 0 || keys_[found - 1] != key ? 1 : 0;
    keys_[found - 1] = key;
    places_[number & 0xffffffff] = static_cast<uint32_t>(found - 1);
  }
  keys_.resize(found);
  firsts_.assign(1, 0);
  for (int64_t block = 1; block <= plan.blocks; ++block) {
    const auto end = static_cast<uint32_t>(plan.rows * block / plan.blocks);
    firsts_.push_back(std::lower_bound(keys_.begin(), keys_.end(), end) - keys_.begin());
  }
}

std::vector<uint32_t> DrawFeatures(const RowPlan& plan) {
  std::mt19937 random(1);
  std::uniform_int_distribution<uint32_t> row(0, static_cast<uint32_t>(plan.used_rows - 1));
  std::vector<uint32_t> ids(static_cast<size_t>(plan.pool * plan.features));
  for (uint32_t& id : ids) id = row(random);
  return ids;
}

namespace {

class RowClient {
 public:
  RowClient(const RowPlan& plan, const std::string& endpoint);
  void Run();

 private:
  // Step: a batch with its weights and its gradient.
  struct Step {
    RowBatch batch;
    std::vector<float> weights;
    std::vector<float> gradient;
    std::vector<std::vector<char>> messages;  // by block
  };

  Step& At(int64_t step) { return steps_[static_cast<size_t>(step) % steps_.size()]; }
  void Prepare(int64_t step);
  void Compute(Step* step) const;
  void Send(Step* of, const Step& asks);
  void Collect(Step* step);

  const RowPlan plan_;
  RawSocket socket_;
  const std::vector<uint32_t> ids_;
  std::vector<Step> steps_;
  std::vector<char> header_;
};

// Steps that are open, the one that is computed, and those whose messages may still be on their way.
RowClient::RowClient(const RowPlan& plan, const std::string& endpoint)
    : plan_(plan),
      socket_(ZMQ_DEALER),
      ids_(DrawFeatures(plan)),
      steps_(static_cast<size_t>(2 * plan.open + 2)),
      header_(static_cast<size_t>(plan.request_header)) {
  for (Step& step : steps_) step.messages.resize(static_cast<size_t>(plan.blocks));
  socket_.Connect(endpoint);
}

void RowClient::Prepare(int64_t step) {
  const int64_t count = plan_.batch * plan_.features;
  Step& at = At(step);
  at.batch.Fill(ids_.data() + step % plan_.steps_in_pool() * count, count, plan_);
  at.weights.resize(at.batch.keys().size());
}

// The sum of each row's weights, and the gradient of each weight of it; no loss.
void RowClient::Compute(Step* step) const {
  step->gradient.assign(step->weights.size(), 0);
  const uint32_t* places = step->batch.places().data();
  for (int64_t row = 0; row < plan_.batch; ++row, places += plan_.features) {
    float sum = 0;
    for (int64_t i = 0; i < plan_.features; ++i) sum += step->weights[places[i]];
    for (int64_t i = 0; i < plan_.features; ++i) step->gradient[places[i]] += sum + 1;
  }
}

// Sends the gradient of a step, null: none, and the keys of another one.
void RowClient::Send(Step* of, const Step& asks) {
  Step& owner = of == nullptr ? const_cast<Step&>(asks) : *of;
  for (int64_t block = 0; block < plan_.blocks; ++block) {
    const auto range = [block](const Step& step) {
      const std::vector<int64_t>& firsts = step.batch.firsts();
      return std::pair(firsts[static_cast<size_t>(block)], firsts[static_cast<size_t>(block) + 1]);
    };
    const auto [first, end] = of == nullptr ? std::pair<int64_t, int64_t>() : range(*of);
    const auto [first_key, end_key] = range(asks);
    const int64_t counts[] = {block, end - first};
    std::memcpy(header_.data(), counts, sizeof counts);
    std::vector<char>& message = owner.messages[static_cast<size_t>(block)];
    message.resize(static_cast<size_t>(end - first + end_key - first_key) * sizeof(float));
    const size_t values = static_cast<size_t>(end - first) * sizeof(float);
    if (values > 0) std::memcpy(message.data(), of->gradient.data() + first, values);
    std::memcpy(message.data() + values, asks.batch.keys().data() + first_key, message.size() - values);
    socket_.SendCopy(header_.data(), header_.size(), true);
    socket_.SendLent(message.data(), message.size(), false);
  }
}

void RowClient::Collect(Step* step) {
  for (int64_t block = 0; block < plan_.blocks; ++block) {
    RawFrame header, weights;
    socket_.Receive(&header, true);
    socket_.Receive(&weights, true);
    std::memcpy(step->weights.data() + step->batch.firsts()[static_cast<size_t>(block)], weights.data(),
                weights.size());
  }
}

void RowClient::Run() {
  for (int64_t step = 0; step < plan_.open; ++step) {
    Prepare(step);
    Send(nullptr, At(step));
  }
  Prepare(plan_.open);
  for (int64_t step = 0; step < plan_.exchanges; ++step) {
    Collect(&At(step));
    Compute(&At(step));
    Send(&At(step), At(step + plan_.open));
    Prepare(step + plan_.open + 1);  // while the message travels
  }
  for (int64_t step = plan_.exchanges; step < plan_.exchanges + plan_.open; ++step) Collect(&At(step));
}

}  // namespace

void RunRowClient(const RowPlan& plan, const std::string& endpoint) { RowClient(plan, endpoint).Run(); }

RowServer::RowServer(const RowPlan& plan, RawSocket& socket)
    : plan_(plan),
      socket_(socket),
      mapped_(static_cast<size_t>(plan.rows) * sizeof(float)),
      requests_(static_cast<size_t>(plan.blocks)),
      replies_(static_cast<size_t>((plan.open + 1) * plan.blocks)),
      reply_header_(static_cast<size_t>(plan.reply_header)) {
  void* const memory =
      mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) FailRaw("mmap");
  madvise(memory, mapped_, MADV_HUGEPAGE);
  weights_ = static_cast<float*>(memory);
  std::fill_n(weights_, plan.rows, 0.0f);
  for (std::vector<Request>& ring : requests_)
    ring = std::vector<Request>(static_cast<size_t>(plan.open) + 1);
}

RowServer::~RowServer() { munmap(weights_, mapped_); }

constexpr int64_t kAhead = 16;  // rows that are prefetched

void RowServer::Update(const AnyKey* keys, const AnyFloat* gradient, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) __builtin_prefetch(weights_ + keys[i + kAhead], 1);
    weights_[keys[i]] -= plan_.rate * gradient[i];
  }
}

void RowServer::Gather(const AnyKey* keys, int64_t count, float* out) const {
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) __builtin_prefetch(weights_ + keys[i + kAhead]);
    out[i] = weights_[keys[i]];
  }
}

void RowServer::Answer() {
  RawFrame client, header;
  socket_.Receive(&client, true);
  socket_.Receive(&header, true);
  int64_t counts[2];  // of the block, and of its gradient's rows
  std::memcpy(counts, header.data(), sizeof counts);
  const int64_t exchange = answered_ / plan_.blocks;
  std::vector<Request>& ring = requests_[static_cast<size_t>(counts[0])];
  Request& request = ring[static_cast<size_t>(exchange) % ring.size()];
  socket_.Receive(&request.frame, true);
  request.gradients = counts[1];
  // The gradient is of the keys that were asked for plan_.open exchanges ago: the next request of the ring.
  const Request& asked = ring[static_cast<size_t>(exchange + 1) % ring.size()];
  if (request.gradients > 0) Update(asked.keys(), request.gradient(), request.gradients);
  std::vector<float>& reply = replies_[static_cast<size_t>(answered_) % replies_.size()];
  reply.resize(static_cast<size_t>(request.key_count()));
  Gather(request.keys(), request.key_count(), reply.data());
  socket_.SendBack(client, true);
  socket_.SendCopy(reply_header_.data(), reply_header_.size(), true);
  socket_.SendLent(reply.data(), reply.size() * sizeof(float), false);
  bytes_ += header.size() + request.frame.size() + reply_header_.size() + reply.size() * sizeof(float);
  ++answered_;
}

LimitResult RowServer::Run() {
  using Clock = std::chrono::steady_clock;
  for (int64_t i = 0; i < plan_.open * plan_.blocks; ++i) Answer();
  bytes_ = 0;
  const Clock::time_point begun = Clock::now();
  for (int64_t i = 0; i < plan_.exchanges * plan_.blocks; ++i) Answer();
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  const auto count = static_cast<double>(plan_.exchanges);
  return {count / seconds, static_cast<double>(bytes_) / count};
}

LimitResult RunRowLimit(const RowPlan& plan) {
  ClientProcesses clients(1, [&plan](const std::string& endpoint) { RunRowClient(plan, endpoint); });
  RawSocket socket(ZMQ_ROUTER);
  RowServer server(plan, socket);
  clients.Begin(socket.Bind());
  const LimitResult result = server.Run();
  clients.Wait();
  return result;
}

}  // namespace dtrain::bench
