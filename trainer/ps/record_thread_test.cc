#include "trainer/ps/record_thread.h"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace dtrain {
namespace {

using std::chrono::milliseconds;
using Texts = std::vector<std::string>;

constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr milliseconds kShort{50};  // in it, what must not happen would
constexpr std::chrono::seconds kLong{60};

net::Message Record(const std::string& name, size_t bytes = 0) {
  net::Message record;
  record.header = net::Frame::Copy(name.data(), name.size());
  if (bytes > name.size()) {
    const std::string rest(bytes - name.size(), 'x');
    record.payload = net::Frame::Copy(rest.data(), rest.size());
  }
  return record;
}

// Something that happens once.
class Event {
 public:
  void Set() { promise_.set_value(); }
  template <typename Duration>
  bool IsIn(Duration time) {
    return future_.wait_for(time) == std::future_status::ready;
  }

 private:
  std::promise<void> promise_;
  std::future<void> future_ = promise_.get_future();
};

TEST_CASE("record thread: records are applied in their order, and all of them when Wait() returns") {
  for (const bool has_thread : {true, false}) {
    CAPTURE(has_thread);
    Texts applied, expected;
    Event returned;
    RecordThread records(has_thread, [&](net::Message& record) {
      if (record.header.text() == "98" && has_thread) CHECK_FALSE(returned.IsIn(kShort));
      applied.emplace_back(record.header.text());
    });
    for (int i = 0; i < 100; ++i) {
      expected.push_back(std::to_string(i));
      records.Add(Record(expected.back()));
      if (i % 7 == 0) records.Begin();
    }
    records.Wait();
    returned.Set();
    CHECK(applied == expected);
    records.Add(Record("last"));
    expected.emplace_back("last");
    records.Wait();
    CHECK(applied == expected);
    records.Wait();  // nothing was added
  }
}

TEST_CASE("record thread: nothing is applied before Begin(), which applies where there is no thread") {
  Texts applied;
  RecordThread records(false, [&](net::Message& record) { applied.emplace_back(record.header.text()); });
  records.Add(Record("a"));
  records.Add(Record("b"));
  CHECK(applied.empty());
  records.Begin();
  CHECK(applied == Texts{"a", "b"});
}

TEST_CASE("record thread: what was thrown is thrown here, and nothing later is applied") {
  Texts applied;
  RecordThread records(true, [&](net::Message& record) {
    if (record.header.text() == "wrong") throw std::runtime_error("it is wrong");
    applied.emplace_back(record.header.text());
  });
  records.Add(Record("a"));
  records.Add(Record("wrong"));
  records.Add(Record("b"));
  CHECK_THROWS_WITH(records.Wait(), "it is wrong");
  records.Add(Record("later", kMaxBytes));
  CHECK_THROWS_WITH(records.Begin(), "it is wrong");
  CHECK_THROWS_WITH(records.Wait(), "it is wrong");
  CHECK(applied == Texts{"a"});
}

TEST_CASE("record thread: without a thread Begin() throws what was thrown, and nothing is applied twice") {
  Texts applied;
  RecordThread records(false, [&](net::Message& record) {
    if (record.header.text() == "wrong") throw std::runtime_error("it is wrong");
    applied.emplace_back(record.header.text());
  });
  records.Add(Record("a"));
  records.Add(Record("wrong"));
  records.Add(Record("b"));
  CHECK_THROWS_WITH(records.Begin(), "it is wrong");
  records.Begin();
  CHECK(applied == Texts{"a"});
}

TEST_CASE("record thread: Begin() waits while 16 MiB are not applied, and goes on then") {
  Texts applied;
  Event returned;
  RecordThread records(true, [&](net::Message& record) {
    if (record.header.text() == "a") CHECK_FALSE(returned.IsIn(kShort));
    applied.emplace_back(record.header.text());
  });
  records.Add(Record("a", kMaxBytes));
  records.Begin();
  records.Add(Record("b", kMaxBytes));
  records.Begin();
  returned.Set();
  records.Wait();
  records.Add(Record("c", kMaxBytes));
  records.Begin();
  records.Wait();
  CHECK(applied == Texts{"a", "b", "c"});
}

TEST_CASE("record thread: Begin() does not wait for less") {
  Texts applied;
  Event returned;
  RecordThread records(true, [&](net::Message& record) {
    if (record.header.text() == "a") CHECK(returned.IsIn(kLong));
    applied.emplace_back(record.header.text());
  });
  records.Add(Record("a", kMaxBytes - 1));
  records.Begin();
  records.Add(Record("b", kMaxBytes));
  records.Begin();
  returned.Set();
  records.Wait();
  CHECK(applied == Texts{"a", "b"});
}

TEST_CASE("record thread: it ends while records wait") {
  Texts applied;
  Event begun, ends;
  auto records = std::make_unique<RecordThread>(true, [&](net::Message& record) {
    if (record.header.text() == "a") begun.Set();
    if (record.header.text() == "a") CHECK_FALSE(ends.IsIn(kShort));
    applied.emplace_back(record.header.text());
  });
  records->Add(Record("a"));
  records->Begin();
  REQUIRE(begun.IsIn(kLong));
  records->Add(Record("b"));
  records->Begin();
  records->Add(Record("c"));
  records.reset();
  ends.Set();
  // What is being applied is applied; "b" may be, if this thread was late.
  REQUIRE(!applied.empty());
  CHECK(applied.front() == "a");
  CHECK(applied.size() <= 2);
}

}  // namespace
}  // namespace dtrain
