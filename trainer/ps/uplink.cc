#include "trainer/ps/uplink.h"

#include "base/error.h"
#include "trainer/peer/abort.h"

namespace dtrain {
namespace {

using wire::Body;

constexpr milliseconds kStatusEvery{5000};

}  // namespace

Uplink::Uplink(const Config& config, TaskId self, net::Channel& channel, net::Transport& transport,
               const Activity& activity, UpdateRule& rule, Logger& log)
    : config_(config),
      self_(self),
      channel_(channel),
      rule_(rule),
      log_(log),
      registration_(config, self, 0, net::NewNodeId(), channel),
      heartbeat_(transport, {{registration_.link().node(), registration_.address()}}, config.failure.detect_s,
                 activity),
      begun_(Clock::now()),
      next_status_(begun_ + kStatusEvery) {}

void Uplink::Ask() {
  PeerLink& link = registration_.link();
  const net::Envelope ready{run_id(), 0, link.NextRequest()};
  link.Send(ready.request, encoder_.Finish(ready, wire::CreateReady(encoder_.Begin())));
  AskForEnd();
}

void Uplink::AskForEnd() {
  if (asking_ || rule_.OwesNorm()) return;
  asking_ = true;
  PeerLink& link = registration_.link();
  const net::Envelope end{run_id(), 0, link.NextRequest()};
  flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
  const gpu::SquareSum* norm = rule_.squares();
  const auto words = norm == nullptr ? 0 : builder.CreateVector(norm->words.data(), norm->words.size());
  const bool infinite = norm != nullptr && !norm->finite;
  link.Send(end.request,
            encoder_.Finish(end, wire::CreateWaitEnd(builder, rule_.NextRound(), words, infinite)));
}

void Uplink::Handle(const wire::Envelope& message) {
  PeerLink& link = registration_.link();
  switch (message.body_type()) {
    case Body::Welcome:
      if (registration_.welcomed()) return;
      registration_.OnWelcome(message.run_id());
      heartbeat_.Watch(0);
      Ask();
      return;
    case Body::Refuse:
      registration_.OnRefuse(*message.body_as_Refuse());
      if (registration_.welcomed()) return;
      if (started_) {
        throw PeerLost("{} was restarted during the run and has lost its state. Start the run again.",
                       link.name());
      }
      link.Clear();
      asking_ = false;
      return;
    case Body::Start:
      started_ |= link.Answered(message.request());
      return;
    case Body::Round:
      if (!link.Answered(message.request())) return;
      asking_ = false;
      rule_.OnRound(*message.body_as_Round());
      return AskForEnd();
    case Body::Scale:
      if (!link.Answered(message.request())) return;
      asking_ = false;
      rule_.OnScale(*message.body_as_Scale());
      return AskForEnd();
    case Body::End:
      if (!link.Answered(message.request())) return;
      end_ = message.body_as_End()->json()->str();
      return SayBye();
    case Body::Abort:
      SayBye();
      throw PeerLost("{}", AbortText(config_.cluster, *message.body_as_Abort()));
    default:
      return;
  }
}

void Uplink::SayBye() {
  const net::Envelope bye{run_id(), 0, registration_.link().NextRequest()};
  net::Message message = encoder_.Finish(bye, wire::CreateBye(encoder_.Begin()));
  channel_.Send(node(), message);
}

void Uplink::Tick(TimePoint now) {
  if (!registration_.welcomed()) {
    registration_.SayHello();
    const double waited = SecondsBetween(begun_, now);
    if (waited > config_.failure.startup_timeout_s) {
      throw PeerLost("{} s (failure.startup_timeout_s) have passed without {}. Start it, or look at its log.",
                     config_.failure.startup_timeout_s, registration_.Waiting());
    }
    if (now >= next_status_) {
      next_status_ = now + kStatusEvery;
      log_.Info("waiting for {}", registration_.Waiting());
    }
    return;
  }
  registration_.link().OnQuiet(now);
  if (heartbeat_.Lost(0)) {
    throw PeerLost("{} has not been heard for {:.1f} s (failure.detect_s = {}). Look at its log.",
                   registration_.link().name(), heartbeat_.SilentSeconds(0), config_.failure.detect_s);
  }
  const std::string status = heartbeat_.status();
  if (!started_ && now >= next_status_ && !status.empty()) {
    next_status_ = now + kStatusEvery;
    log_.Info("waiting: {}", status);
  }
}

void Uplink::Abort(int exit_code, const std::string& text) {
  flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
  net::Message message = encoder_.Finish({run_id(), 0, 0}, CreateAbort(builder, exit_code, self_, text));
  channel_.Send(node(), message);
}

}  // namespace dtrain
