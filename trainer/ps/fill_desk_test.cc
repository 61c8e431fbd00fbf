#include "trainer/ps/fill_desk.h"

#include <doctest/doctest.h>

#include <vector>

#include "trainer/ps/ps_test_util.h"

namespace dtrain {
namespace {

// ps 1, which has one element of two: there a worker that asks was told to by ps 0.
class Ps : public PsFixture {
 public:
  Ps() : PsFixture(LinearCluster(2, 1, 10), 1) {
    worker().node = 2;
    ps0.task = {Role::kPs, 0};
    ps0.node = 4;
  }
  Member& worker() { return *members.Worker(0); }
  wire::Body LastAnswer() const {
    return channel.sent.empty() ? wire::Body::NONE : channel.sent.back().envelope().body_type();
  }
  // `count` values from element `first` on.
  void Restore(const Member& member, uint64_t first, size_t count, uint64_t checksum = 0) {
    const std::vector<float> values(count, 7);
    const net::Message message =
        Make([&](auto& builder) { return wire::CreateRestore(builder, 0, first, checksum); });
    desk.OnRestore(member, 1, *net::Decode(message)->body_as_Restore(),
                   {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(float)});
  }

  Member ps0;  // as if it asked: among the members of ps 1 there are workers only
  FillDesk desk{config, layout, 1, shard, nullptr, outbox};
};

TEST_CASE("fill desk: values that fit are restored, and acknowledged") {
  Ps ps;
  ps.Restore(ps.worker(), 0, 1);
  CHECK(ps.LastAnswer() == wire::Body::Ack);
}

TEST_CASE("fill desk: values that do not fit, or are not those of their checksum, are refused") {
  Ps ps;
  ps.Restore(ps.worker(), 0, 2);
  CHECK(ps.LastAnswer() == wire::Body::Refuse);
  ps.Restore(ps.worker(), 1, 1);
  CHECK(ps.LastAnswer() == wire::Body::Refuse);
  ps.Restore(ps.worker(), 0, 1, 12345);
  CHECK(ps.LastAnswer() == wire::Body::Refuse);
}

TEST_CASE("fill desk: only a worker may fill the range of a ps") {
  Ps ps;
  const Member& other = ps.ps0;
  ps.Restore(other, 0, 1);
  CHECK(ps.LastAnswer() == wire::Body::Refuse);
  ps.channel.sent.clear();
  const net::Message message = ps.Make([](auto& builder) { return wire::CreateInitialise(builder); });
  ps.desk.OnInitialise(other, 2, *net::Decode(message)->body_as_Initialise());
  CHECK(ps.LastAnswer() == wire::Body::NONE);
  ps.desk.OnInitialise(ps.worker(), 2, *net::Decode(message)->body_as_Initialise());
  CHECK(ps.LastAnswer() == wire::Body::Ack);
}

TEST_CASE("fill desk: where the chief reads the checkpoint nothing is loaded here") {
  Ps ps;
  const net::Message message =
      ps.Make([](auto& builder) { return wire::CreateLoad(builder, builder.CreateString("step-1")); });
  CHECK_FALSE(ps.desk.OnLoad(ps.worker(), 1, *net::Decode(message)->body_as_Load()));
  CHECK_FALSE(ps.desk.busy());
  CHECK(ps.LastAnswer() == wire::Body::NONE);
}

}  // namespace
}  // namespace dtrain
