#include "trainer/peer/registration.h"

#include <algorithm>

#include "base/error.h"
#include "net/tcp.h"
#include "trainer/config/dump.h"
#include "trainer/peer/this_host.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

using wire::Reason;

// A refusal is repeated with each Hello, so an old one says nothing of now.
constexpr milliseconds kFreshRefusal{2000};

// How many workers such as this one the processors here are enough for.
uint32_t WorkersAtOnce(const DeviceConfig& device) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(Processors() / (device.threads * device.towers()), 1, 1000000));
}

std::string AddressOf(const ClusterConfig& cluster, TaskId task) {
  return (task.role == Role::kPs ? cluster.ps : cluster.worker).at(static_cast<size_t>(task.index));
}

}  // namespace

Registration::Registration(const Config& config, TaskId self, int ps_index, uint64_t incarnation,
                           net::Channel& channel, int64_t open_blocks)
    : config_(config),
      self_(self),
      ps_index_(ps_index),
      incarnation_(incarnation),
      address_(AddressOf(config.cluster, {Role::kPs, ps_index})),
      channel_(channel),
      link_(channel, net::NewNodeId(), TaskNameAndAddress(config.cluster, {Role::kPs, ps_index}),
            MostOpenRequests(open_blocks)) {
  channel_.Connect(link_.node(), address_);
}

void Registration::SayHello() {
  flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
  std::vector<flatbuffers::Offset<wire::Setting>> settings;
  for (const auto& [key, value] : RunSettings(config_)) {
    settings.push_back(wire::CreateSetting(builder, builder.CreateString(key), builder.CreateString(value)));
  }
  const auto list = builder.CreateVector(settings);
  const auto address = builder.CreateString(AddressOf(config_.cluster, self_));
  const auto process = builder.CreateString(ProcessText());
  const auto host = builder.CreateString(HostId());
  const auto version = builder.CreateString(kVersion);
  const std::string& dir = config_.checkpoint.dir;
  const auto checkpoint_dir = dir.empty() ? 0 : builder.CreateString(dir);
  net::Message hello = encoder_.Finish(
      run_.Envelope(0), wire::CreateHello(builder, net::kProtocol,
                                          self_.role == Role::kPs ? wire::Role::Ps : wire::Role::Worker,
                                          static_cast<uint32_t>(self_.index),
                                          static_cast<uint32_t>(ps_index_), address, process, version, list,
                                          incarnation_, host, WorkersAtOnce(config_.device), checkpoint_dir));
  channel_.Send(link_.node(), hello);  // not connected yet: said again soon
}

void Registration::OnWelcome(RunId run, bool saves) {
  welcomed_ = true;
  run_ = run;
  saves_ = saves;
}

void Registration::OnRefuse(const wire::Refuse& refuse) {
  const std::string text = refuse.text()->str();
  switch (refuse.reason()) {
    case Reason::NotReady:
    case Reason::Held:
      last_refusal_ = text;
      refused_ = Clock::now();
      return;
    case Reason::Unregistered:
    case Reason::Run:
      welcomed_ = false;  // the ps was restarted
      return;
    case Reason::BadRequest:
      throw Failure(ExitCode::kInternal,
                    fmt::format("{} refused a request of {}: {}", link_.name(), TaskName(self_), text));
    default:
      if (was_in_run_ && !welcomed_ && refuse.reason() != Reason::Duplicate) {
        last_refusal_ = "refuses this task: " + text;
        refused_ = Clock::now();
        return;
      }
      throw UserError("{} refuses {}: {}.", link_.name(), TaskName(self_), text);
  }
}

std::string Registration::Waiting() const {
  if (!last_refusal_.empty() && Clock::now() - refused_ < kFreshRefusal)
    return fmt::format("{}: {}", link_.name(), last_refusal_);
  const net::ProbeResult probe = net::Probe(address_, milliseconds(500));
  if (probe.status == net::ProbeStatus::kOpen) {
    return link_.name() + ": listens, but has not answered yet; if that lasts, check the address and its log";
  }
  return fmt::format("{}: {}", link_.name(), probe.text);
}

}  // namespace dtrain
