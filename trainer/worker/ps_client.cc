#include "trainer/worker/ps_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

using wire::Body;

constexpr milliseconds kSlice{100};
// The slice of waits when more blocks may be open than a queue holds: only looking shows that there is room.
constexpr milliseconds kQueueSlice{10};

std::vector<size_t> MaxOpenWith(const Config& config, const Layout& layout) {
  std::vector<size_t> max_open;
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    max_open.push_back(MaxOpenRequests(Exchanges::WindowOf(config.train, layout, ps)));
  }
  return max_open;
}

milliseconds SliceFor(const Config& config, const Layout& layout) {
  const std::vector<size_t> max_open = MaxOpenWith(config, layout);
  return *std::max_element(max_open.begin(), max_open.end()) > MaxOpenRequests(kOpenBlocks) ? kQueueSlice
                                                                                            : kSlice;
}

}  // namespace

PsClient::PsClient(const Config& config, TaskId self, const Layout& layout, net::Channel& channel,
                   net::Transport& transport, Activity& activity, Logger& log)
    : config_(config),
      channel_(channel),
      activity_(activity),
      log_(log),
      peers_(config, self, MaxOpenWith(config, layout), channel, transport, activity, log),
      exchanges_(config, layout, peers_.all(), self.index),
      slice_(SliceFor(config, layout)) {}

void PsClient::Join() {
  activity_.what = kJoining;  // joining has its own deadline, and may look up names
  while (!peers_.joined()) {
    activity_.Turn();
    const TimePoint pause = peers_.SayHello(Clock::now());
    for (int i = 0; i < kMessagesInARow && !peers_.joined() && ReceiveOne(pause); ++i) {
    }
  }
  exchanges_.set_run(peers_.run());
}

void PsClient::Rejoin() {
  peers_.BeginAnew();
  exchanges_.DropOpen();
  Join();
}

bool PsClient::ReceiveOne(TimePoint deadline) {
  net::NodeId from = 0;
  if (channel_.Receive(deadline, &from, &message_) != net::ReceiveResult::kMessage) return false;
  const wire::Envelope* envelope = net::Decode(message_);
  const size_t ps = peers_.IndexOf(from);
  if (envelope == nullptr || ps == peers_.size()) {
    log_.Warning("dropped a frame that is not a message of dtrain");
  } else if (envelope->body_type() == Body::Weights) {
    exchanges_.OnWeights(ps, message_, *envelope);
  } else if (!peers_.Take(ps, *envelope)) {
    OnAnswer(ps, *envelope);
  }
  return true;
}

void PsClient::OnAnswer(size_t ps, const wire::Envelope& envelope) {
  if (!peers_[ps].Answered(envelope.request())) return;  // a repeated answer
  if (exchanges_.awaits(ps)) {
    throw Failure(ExitCode::kInternal,
                  fmt::format("{} answered a push or a pull with something else", peers_[ps].name()));
  }
  answer_ = &envelope;
  answer_from_ = ps;
}

// Takes one message. If none comes, or after many without a pause, looks after the open requests and at the
// clock. `what`: see Conversations::OnQuiet().
void PsClient::Wait(const char* what) {
  if (ReceiveOne(Clock::now() + slice_) && ++in_a_row_ < kMessagesInARow) return;
  in_a_row_ = 0;
  activity_.Turn();
  if (on_quiet_) on_quiet_();
  peers_.OnQuiet(Clock::now(), what);
}

void PsClient::Enter(const Exchanges::Entry& entry, KeyedBatch* rows) {
  exchanges_.Pull(entry, {nullptr, rows});
  Collect();
}

bool PsClient::Read(KeyedBatch* rows, uint64_t snapshot, float* into) {
  DT_CHECK(exchanges_.open() == 0, exchanges_.open());
  exchanges_.Pull(std::nullopt, {nullptr, rows, true, snapshot, into});
  Collect();
  return !exchanges_.TakeGone();
}

void PsClient::Pull() {
  exchanges_.Pull();
  Collect();
}

void PsClient::Leave() {
  exchanges_.Leave();
  Collect();
}

// Outside async an answer waits for other workers, for as long as they are alive.
void PsClient::Collect() {
  while (!exchanges_.CloseOldest()) Wait(config_.train.mode == TrainMode::kAsync ? "an exchange" : nullptr);
}

void PsClient::CollectArrived() {
  TakeArrived();
  while (exchanges_.CloseOldest()) {
  }
}

void PsClient::TakeArrived() {
  for (int i = 0; i < kMessagesInARow && ReceiveOne(TimePoint()); ++i) {
  }
}

void PsClient::Attend() {
  TakeArrived();
  activity_.Turn();
  peers_.OnQuiet(Clock::now(), nullptr);
}

void PsClient::CheckAllAlive() {
  activity_.Turn();
  peers_.CheckAlive();
}

}  // namespace dtrain
