#include "trainer/ps/row_desk.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "trainer/model/layout.h"
#include "trainer/shard/table_shard.h"
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
  Desk() : layout_(TableLayoutOf(config_.model, 1)), shard_(config_, layout_, 0), desk_(config_, shard_) {}
  std::string Take(int worker, uint64_t request, const std::vector<uint32_t>& keys, bool keeps = true,
                   uint64_t of = 0) {
    return desk_.Take(worker, 0, request,
                      {reinterpret_cast<const std::byte*>(keys.data()), keys.size() * sizeof(uint32_t)},
                      keeps, of);
  }
  bool Has(int worker, uint64_t request) const { return desk_.Find(worker, 0, request) != nullptr; }
  RowDesk& desk() { return desk_; }
  const TableShard& shard() const { return shard_; }

 private:
  const Config config_ = SparseJob();
  const Layout layout_;
  const TableShard shard_;
  RowDesk desk_;
};

TEST_CASE("row desk: a list is found by its request, and taken once") {
  Desk at;
  CHECK(at.Take(0, 5, {1, 7}) == "");
  REQUIRE(at.Has(0, 5));
  CHECK(*at.desk().Find(0, 0, 5) == KeyList{1, 7});
  CHECK(at.Take(0, 5, {9, 9}) == "");  // repeated, and not read again
  CHECK(*at.desk().Find(0, 0, 5) == KeyList{1, 7});
  CHECK_FALSE(at.Has(1, 5));
  CHECK_FALSE(at.Has(0, 6));
}

TEST_CASE("row desk: keys that are none are told, and nothing is kept") {
  Desk at;
  CHECK(at.Take(0, 5, {7, 1}) == "key 1 of 2 is 1; must be from 8 to 112");
  CHECK(at.Take(0, 5, {128}) == "key 0 of 1 is 128; must be from 0 to 112");
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
  const Desk at;
  RowDesk::Parts parts;
  CHECK(RowDesk::Split({payload.data(), payload.size()}, 2, *at.shard().table(0), &parts));
  CHECK(parts.values.size == 12);
  CHECK(parts.keys.data == payload.data() + 12);
  CHECK(parts.keys.size == 8);
  CHECK(RowDesk::Split({payload.data(), payload.size()}, 5, *at.shard().table(0), &parts));
  CHECK(parts.values.size == 0);
  CHECK_FALSE(RowDesk::Split({payload.data(), payload.size()}, 6, *at.shard().table(0), &parts));
  CHECK_FALSE(RowDesk::Split({payload.data(), payload.size()}, 0xffffffff, *at.shard().table(0), &parts));
  const TableLayout hashed(TableLayout::kHashed, 1, 1);  // whose keys have 8 bytes
  CHECK(RowDesk::Split({payload.data(), payload.size()}, 2, hashed, &parts));
  CHECK(parts.values.size == 4);
  CHECK_FALSE(RowDesk::Split({payload.data(), payload.size()}, 3, hashed, &parts));
}

}  // namespace
}  // namespace dtrain
