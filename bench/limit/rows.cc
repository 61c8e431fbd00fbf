#include "bench/limit/rows.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <utility>

#include "bench/limit/client_processes.h"
#include "bench/limit/step.h"

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

std::vector<uint32_t> PoolOf(const RowPlan& plan) {
  std::vector<uint32_t> ids(static_cast<size_t>(plan.pool * plan.features));
  if (!plan.ids.empty()) {
    std::ifstream file(plan.ids, std::ios::binary);
    if (!file.read(reinterpret_cast<char*>(ids.data()),
                   static_cast<std::streamsize>(ids.size() * sizeof(uint32_t)))) {
      FailRaw(plan.ids.c_str());
    }
    return ids;
  }
  std::mt19937 random(1);
  std::uniform_int_distribution<uint32_t> row(0, static_cast<uint32_t>(plan.used_rows - 1));
  for (uint32_t& id : ids) id = row(random);
  return ids;
}

namespace {

LimitPlan LayersOf(const RowPlan& plan) {
  LimitPlan layers;
  layers.layers = plan.layers;
  layers.batch = plan.batch;
  return layers;
}

class RowClient {
 public:
  RowClient(const RowPlan& plan, const std::string& endpoint);
  void Run();

 private:
  // Step: a batch with its weights and its gradient, of its rows and of the layers.
  struct Step {
    RowBatch batch;
    std::vector<float> weights, gradient;
    std::vector<float> layers, layers_gradient;
    std::vector<std::vector<char>> messages;  // by block
  };

  Step& At(int64_t step) { return steps_[static_cast<size_t>(step) % steps_.size()]; }
  void Prepare(int64_t step);
  void Compute(Step* step);
  void ComputeSums(Step* step) const;
  void ComputeLayers(Step* step);
  void Send(Step* of, const Step& asks);
  void SendHeader(int64_t block, int64_t gradients);
  void Collect(Step* step);

  const RowPlan plan_;
  RawSocket socket_;
  const std::vector<uint32_t> ids_;
  std::vector<Step> steps_;
  std::vector<char> header_;
  std::optional<LimitStep> net_;
  std::vector<float> sums_;  // of a batch
};

// Steps that are open, the one that is computed, and those whose messages may still be on their way.
RowClient::RowClient(const RowPlan& plan, const std::string& endpoint)
    : plan_(plan),
      socket_(ZMQ_DEALER),
      ids_(PoolOf(plan)),
      steps_(static_cast<size_t>(2 * plan.open + 2)),
      header_(static_cast<size_t>(plan.request_header)) {
  for (Step& step : steps_) {
    step.messages.resize(static_cast<size_t>(plan.blocks));
    step.layers.resize(static_cast<size_t>(plan.flat()));
    step.layers_gradient = step.layers;
  }
  if (!plan.layers.empty()) net_.emplace(LayersOf(plan), RandomBatch(LayersOf(plan)), true);
  socket_.Connect(endpoint);
}

void RowClient::Prepare(int64_t step) {
  const int64_t count = plan_.batch * plan_.features;
  Step& at = At(step);
  at.batch.Fill(ids_.data() + step % plan_.steps_in_pool() * count, count, plan_);
  at.weights.resize(at.batch.keys().size() * static_cast<size_t>(plan_.width));
}

void RowClient::Compute(Step* step) {
  step->gradient.assign(step->weights.size(), 0);
  net_ ? ComputeLayers(step) : ComputeSums(step);
}

// The sum of each row's weights, and the gradient of each weight of it; no loss.
void RowClient::ComputeSums(Step* step) const {
  const uint32_t* places = step->batch.places().data();
  for (int64_t row = 0; row < plan_.batch; ++row, places += plan_.features) {
    float sum = 0;
    for (int64_t i = 0; i < plan_.features; ++i) sum += step->weights[places[i]];
    for (int64_t i = 0; i < plan_.features; ++i) step->gradient[places[i]] += sum + 1;
  }
}

// The same of the first float of each row, and beside it layers on the others.
void RowClient::ComputeLayers(Step* step) {
  const int64_t batch = plan_.batch, features = plan_.features, inputs = plan_.layers.front();
  const uint32_t* const places = step->batch.places().data();
  sums_.resize(static_cast<size_t>(batch));
  const EmbeddingShape shape{batch, features, plan_.width, inputs};
  JoinPass(shape, step->weights.data(), places, net_->inputs(), sums_.data());
  net_->Run(step->layers.data(), step->layers_gradient.data());
  SpreadPass(shape, net_->input_slopes(), sums_.data(), places, step->gradient.data());
}

void RowClient::SendHeader(int64_t block, int64_t gradients) {
  const int64_t counts[] = {block, gradients};
  std::memcpy(header_.data(), counts, sizeof counts);
  socket_.SendCopy(header_.data(), header_.size(), true);
}

// Sends the gradient of a step, null: none, and the keys of another one.
void RowClient::Send(Step* of, const Step& asks) {
  Step& owner = of == nullptr ? const_cast<Step&>(asks) : *of;
  if (net_) {
    SendHeader(plan_.blocks, of == nullptr ? 0 : plan_.flat());
    socket_.SendLent(owner.layers_gradient.data(),
                     of == nullptr ? 0 : owner.layers_gradient.size() * sizeof(float), false);
  }
  for (int64_t block = 0; block < plan_.blocks; ++block) {
    const auto range = [block](const Step& step) {
      const std::vector<int64_t>& firsts = step.batch.firsts();
      return std::pair(firsts[static_cast<size_t>(block)], firsts[static_cast<size_t>(block) + 1]);
    };
    const auto [first, end] = of == nullptr ? std::pair<int64_t, int64_t>() : range(*of);
    const auto [first_key, end_key] = range(asks);
    std::vector<char>& message = owner.messages[static_cast<size_t>(block)];
    const auto values = static_cast<size_t>((end - first) * plan_.width) * sizeof(float);
    message.resize(values + static_cast<size_t>(end_key - first_key) * sizeof(uint32_t));
    if (values > 0) std::memcpy(message.data(), of->gradient.data() + first * plan_.width, values);
    std::memcpy(message.data() + values, asks.batch.keys().data() + first_key, message.size() - values);
    SendHeader(block, end - first);
    socket_.SendLent(message.data(), message.size(), false);
  }
}

void RowClient::Collect(Step* step) {
  const auto take = [&](float* to) {
    RawFrame header, weights;
    socket_.Receive(&header, true);
    socket_.Receive(&weights, true);
    std::memcpy(to, weights.data(), weights.size());
  };
  if (net_) take(step->layers.data());
  for (int64_t block = 0; block < plan_.blocks; ++block) {
    take(step->weights.data() + step->batch.firsts()[static_cast<size_t>(block)] * plan_.width);
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
      mapped_(static_cast<size_t>(plan.rows * plan.row_floats()) * sizeof(float)),
      requests_(static_cast<size_t>(plan.blocks)),
      replies_(static_cast<size_t>((plan.open + 1) * plan.blocks)),
      layers_(static_cast<size_t>(plan.open) + 1,
              std::vector<float>(static_cast<size_t>(plan.flat()), kFirstValue)),
      accumulators_(layers_.back().size(), kFirstAccumulator),
      reply_header_(static_cast<size_t>(plan.reply_header)) {
  void* const memory =
      mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) FailRaw("mmap");
  madvise(memory, mapped_, MADV_HUGEPAGE);
  rows_ = static_cast<float*>(memory);
  for (float* row = rows_; row < rows_ + plan.rows * plan.row_floats(); row += plan.row_floats()) {
    std::fill_n(row, plan.width, 0.0f);
    std::fill(row + plan.width, row + plan.row_floats(), kFirstAccumulator);
  }
  for (std::vector<Request>& ring : requests_)
    ring = std::vector<Request>(static_cast<size_t>(plan.open) + 1);
}

RowServer::~RowServer() { munmap(rows_, mapped_); }

// Updates the rows of a gradient, and returns those that are asked for.
const std::vector<float>& RowServer::AnswerRows(int64_t block, int64_t gradients) {
  const RowTable table{rows_, plan_.width, plan_.adagrad};
  const int64_t exchange = answered_ / plan_.messages();
  std::vector<Request>& ring = requests_[static_cast<size_t>(block)];
  Request& request = ring[static_cast<size_t>(exchange) % ring.size()];
  socket_.Receive(&request.frame, true);
  bytes_ += request.frame.size();
  request.gradients = gradients;
  // The gradient is of the keys that were asked for plan_.open exchanges ago: the next request of the ring.
  const Request& asked = ring[static_cast<size_t>(exchange + 1) % ring.size()];
  if (gradients > 0)
    UpdateRowsPass(table, asked.keys(plan_.width), request.gradient(), plan_.rate, gradients);
  std::vector<float>& reply =
      replies_[static_cast<size_t>(exchange * plan_.blocks + block) % replies_.size()];
  const int64_t count = request.key_count(plan_.width);
  reply.resize(static_cast<size_t>(count * plan_.width));
  GatherRowsPass(table, request.keys(plan_.width), count, reply.data());
  return reply;
}

// Makes the next version of the layers, if there is a gradient.
const std::vector<float>& RowServer::AnswerLayers(int64_t gradients) {
  RawFrame frame;
  socket_.Receive(&frame, true);
  bytes_ += frame.size();
  if (gradients > 0) {
    const auto* const gradient = static_cast<const AnyFloat*>(frame.data());
    const float* const weights = layers_.back().data();
    float* const updated = layers_.front().data();
    plan_.adagrad ? AdagradPass(weights, gradient, plan_.rate, accumulators_.data(), updated, plan_.flat())
                  : UpdatePass(weights, gradient, plan_.rate, updated, plan_.flat());
    std::rotate(layers_.begin(), layers_.begin() + 1, layers_.end());
  }
  return layers_.back();
}

void RowServer::Answer() {
  RawFrame client, header;
  socket_.Receive(&client, true);
  socket_.Receive(&header, true);
  int64_t counts[2];  // the block, and how much of a gradient there is
  std::memcpy(counts, header.data(), sizeof counts);
  const std::vector<float>& reply =
      counts[0] < plan_.blocks ? AnswerRows(counts[0], counts[1]) : AnswerLayers(counts[1]);
  socket_.SendBack(client, true);
  socket_.SendCopy(reply_header_.data(), reply_header_.size(), true);
  socket_.SendLent(reply.data(), reply.size() * sizeof(float), false);
  bytes_ += header.size() + reply_header_.size() + reply.size() * sizeof(float);
  ++answered_;
}

LimitResult RowServer::Run() {
  using Clock = std::chrono::steady_clock;
  for (int64_t i = 0; i < plan_.open * plan_.messages(); ++i) Answer();
  bytes_ = 0;
  const Clock::time_point begun = Clock::now();
  for (int64_t i = 0; i < plan_.exchanges * plan_.messages(); ++i) Answer();
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
