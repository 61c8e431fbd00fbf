#include "trainer/ps/row_desk.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "trainer/model/layout.h"
#include "trainer/shard/shard.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

Config SparseJob() {
  Config config = LinearCluster(1, 2, 10);
  config.model.inputs = 100;
  return config;
}

class Desk {
 public:
  Desk()
      : layout_(TableLayoutOf(config_.model, 1)),
        shard_(MakeParts(config_, layout_, 0)),
        desk_(config_, shard_) {}
  std::string Take(int worker, uint64_t request, const std::vector<uint32_t>& keys, bool keeps = true,
                   uint64_t of = 0) {
    const KeyList wide(keys.begin(), keys.end());
    std::vector<std::byte> bytes(MaxKeyBytes(keys.size(), *layout_.table));
    const size_t size = EncodeKeys({wide.data(), static_cast<int64_t>(wide.size())}, {0, 128}, bytes.data());
    return desk_.Take(worker, 0, request, {bytes.data(), size}, static_cast<uint32_t>(keys.size()), keeps,
                      of);
  }
  bool Has(int worker, uint64_t request) const { return desk_.Find(worker, 0, request) != nullptr; }
  RowDesk& desk() { return desk_; }

 private:
  const Config config_ = SparseJob();
  const Layout layout_;
  const Shard shard_;
  RowDesk desk_;
};

TEST_CASE("row desk: a list is found by its request, and taken once") {
  Desk at;
  CHECK(at.Take(0, 5, {1, 7}) == "");
  REQUIRE(at.Has(0, 5));
  CHECK(*at.desk().Find(0, 0, 5) == KeyList{1, 7});
  CHECK(at.Take(0, 5, {9}) == "");  // repeated, and not read again
  CHECK(*at.desk().Find(0, 0, 5) == KeyList{1, 7});
  CHECK_FALSE(at.Has(1, 5));
  CHECK_FALSE(at.Has(0, 6));
}

TEST_CASE("row desk: keys that are none are told, and nothing is kept") {
  Desk at;
  CHECK(at.Take(0, 5, {113}) == "keys 0 to 0 of 1 go beyond the last of the 113 rows");
  CHECK_FALSE(at.Has(0, 5));
}

TEST_CASE(
    "row desk: as many lists are kept as exchanges may be open, and the one that a gradient names stays") {
  Desk at;
  for (const uint64_t request : {1, 2, 3}) CHECK(at.Take(0, request, {1}) == "");
  CHECK(at.Take(0, 4, {2}, true, 1) == "");
  CHECK(at.Has(0, 1));
  CHECK_FALSE(at.Has(0, 2));
  CHECK(at.Take(0, 5, {2}, true, 3) == "");
  CHECK_FALSE(at.Has(0, 1));
  CHECK(at.Has(0, 3));
}

TEST_CASE(
    "row desk: rows for an evaluation take the place of no other list, and a worker that left has none") {
  Desk at;
  for (const uint64_t request : {1, 2, 3}) CHECK(at.Take(0, request, {1}) == "");
  for (uint64_t request = 4; request < 20; ++request) CHECK(at.Take(0, request, {3}, false) == "");
  for (const uint64_t request : {1, 2, 3, 19}) CHECK(at.Has(0, request));
  CHECK_FALSE(at.Has(0, 18));
  CHECK(at.Take(1, 1, {1}) == "");
  at.desk().Forget(0);
  CHECK_FALSE(at.Has(0, 1));
  CHECK_FALSE(at.Has(0, 19));
  CHECK(at.Has(1, 1));
}

TEST_CASE("row desk: a payload is split into values and keys, if it has room for them") {
  const std::vector<std::byte> payload(20);
  RowDesk::Parts parts;
  CHECK(RowDesk::Split({payload.data(), payload.size()}, 7, &parts));
  CHECK(parts.values.size == 13);
  CHECK(parts.keys.data == payload.data() + 13);
  CHECK(parts.keys.size == 7);
  CHECK(RowDesk::Split({payload.data(), payload.size()}, 20, &parts));
  CHECK(parts.values.size == 0);
  CHECK_FALSE(RowDesk::Split({payload.data(), payload.size()}, 21, &parts));
  CHECK_FALSE(RowDesk::Split({payload.data(), payload.size()}, 0xffffffff, &parts));
}

}  // namespace
}  // namespace dtrain
