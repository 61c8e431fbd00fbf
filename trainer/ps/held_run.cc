#include "trainer/ps/held_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/signals.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"
#include "trainer/peer/conversation.h"
#include "trainer/peer/conversations.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/peer/this_host.h"
#include "trainer/ps/outbox.h"

namespace dtrain {
namespace {

constexpr milliseconds kTick{20};

[[noreturn]] void Stop(int signal) {
  RunSummary summary;
  summary.status = "stopped";
  throw RunStopped(StopExitCode(signal),
                   fmt::format("stopped by {} before the run began", SignalName(signal)), std::move(summary));
}

}  // namespace

std::optional<HeldRun> FindHeldRun(const PsTask& task) {
  const TaskId holder{Role::kPs, 1};
  const double max_s = task.config.failure.startup_timeout_s;
  Conversation conversation(task.channel, task.config.cluster, holder, 1);
  Outbox outbox(task.channel, /*max_late=*/1);
  const uint64_t settings_hash = SettingsHash(RunSettings(task.config));
  const Activity activity(task.stop);
  const TimePoint begun = Clock::now();
  WaitPace tells(begun);
  TimePoint next;  // question
  std::optional<HeldRun> held;
  net::NodeId from = 0;
  net::Message message;
  for (bool asks = true; asks;) {
    const TimePoint now = Clock::now();
    if (const int signal = activity.stop_signal()) Stop(signal);
    if (SecondsBetween(begun, now) > max_s) {
      throw PeerLost(
          "{} has not said in {} s (failure.startup_timeout_s) whether it has a replica of this ps 0 "
          "(failure.replicas). Start it, or look at its log.",
          conversation.name(), max_s);
    }
    if (tells.IsDue(now)) {
      task.log.Info("waiting for {}, which may have a replica of this ps 0; {}", conversation.name(),
                    GivesUpText(task.config, begun, max_s));
    }
    if (now >= next) {
      next = now + kTick;
      conversation.Tell(RunId(), [&](auto& builder) {  // lost while not connected, or behind many strangers
        return wire::CreateReplicaAsk(builder, builder.CreateString(ProcessText()), settings_hash);
      });
    }
    if (task.channel.Receive(now + kTick, &from, &message) != net::ReceiveResult::kMessage) continue;
    const wire::Envelope* const envelope = net::Decode(message);
    if (envelope == nullptr) continue;
    if (from != conversation.node()) {
      outbox.RefuseQuestion(from, *envelope, wire::Reason::NotReady,
                            fmt::format("ps 0 waits for {}, which may have its replica", TaskName(holder)));
      continue;
    }
    const wire::Refuse* const refuse = envelope->body_as_Refuse();
    if (refuse != nullptr && refuse->reason() == wire::Reason::Config) {
      throw UserError("{} has a replica of ps 0, and refuses this one: {}.", conversation.name(),
                      ShortText(refuse->text()->str()));
    }
    const wire::ReplicaHeld* const answer = envelope->body_as_ReplicaHeld();
    asks = answer == nullptr;
    if (asks || answer->epoch() == 0 || !RunIdOf(*envelope).known()) continue;
    const auto quiet = static_cast<int64_t>(std::min<uint64_t>(answer->quiet_ms(), 1'000'000'000));
    held = HeldRun{RunIdOf(*envelope), answer->epoch(), now - milliseconds(quiet)};
  }
  task.channel.Disconnect(conversation.node());
  return held;
}

}  // namespace dtrain
