// RegistrarFixture: ps 0's Registrar and Coordinator, before tasks that say what the test makes them say.
#pragma once

#include <string>

#include "trainer/peer/abort.h"
#include "trainer/ps/hello_test_util.h"
#include "trainer/ps/ps_task_test_util.h"
#include "trainer/ps/registrar.h"

namespace dtrain {

constexpr RunId kRegistrarRun{77, 0};

struct RegistrarFixture : PsTaskFixture {
  explicit RegistrarFixture(const Config& of) : PsTaskFixture(of) {
    outbox.set_run(kRegistrarRun);
    coordinator.set_start_point([](Member&) { return StartPoint(); });
    coordinator.set_begin_at([](int64_t) {});
    coordinator.set_fill([this](bool again, const std::optional<DataFacts>&) {
      ++fills;
      fills_again = again;
    });
  }
  static net::NodeId NodeOf(TaskId task) {
    return 0x100 * static_cast<net::NodeId>(task.role == Role::kPs ? 8 + task.index : 1 + task.index);
  }
  void Hello(net::NodeId from, TaskId task) {
    const wire::Role role = task.role == Role::kPs ? wire::Role::Ps : wire::Role::Worker;
    registrar.OnHello(from, HelloMessage(config, role, static_cast<uint32_t>(task.index)).get());
  }
  // Every task of the spec but ps 0.
  void AllJoin() {
    for (const Member& member : members.all()) Hello(NodeOf(member.task), member.task);
  }
  // They are ready, and every ps has its first weights.
  void Begin() {
    AllJoin();
    for (Member& member : members.all()) {
      Ask(member, [](auto& builder) { return wire::CreateReady(builder); });
    }
    coordinator.OnFilled(StartedFrom());
  }
  template <typename Build>
  void Ask(Member& member, Build&& build) {
    const net::Message message = encoder.Finish({0, 0, ++request}, build(encoder.Begin()));
    CHECK(coordinator.Handle(member, *net::Decode(message)));
  }
  void Beat(Member& member, int stop = 0) {
    const net::Message beat = Make([&](auto& builder) {
      return wire::CreateHeartbeat(builder, builder.CreateString("load"), 7, builder.CreateString(""), 0, 0,
                                   0, stop);
    });
    registrar.OnHeartbeat(member, member.node | 1, *net::Decode(beat)->body_as_Heartbeat());
  }
  void Abort(Member& member, ExitCode code) {
    const net::Message abort = Make(
        [&](auto& builder) { return CreateAbort(builder, static_cast<int>(code), member.task, "it broke"); });
    registrar.OnAbort(member, *net::Decode(abort)->body_as_Abort());
  }
  // What was sent last, a refusal.
  wire::Reason Refused() const {
    const wire::Refuse* const refuse = Last().envelope().body_as_Refuse();
    DT_CHECK(refuse != nullptr);
    return refuse->reason();
  }

  Coordinator coordinator{config, members, outbox, log, history};
  uint64_t request = 0;
  int fills = 0;  // orders to fill the ranges
  bool fills_again = false;
  Registrar registrar{{task, shard, rule, members, outbox, &coordinator, nullptr}};
};

}  // namespace dtrain
