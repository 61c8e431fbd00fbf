#include <doctest/doctest.h>
#include <errno.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/testing/file_limit.h"
#include "base/testing/files.h"
#include "trainer/summary/event_test_util.h"
#include "trainer/summary/event_writer.h"

namespace dtrain {
namespace {

LogOptions Quiet() {
  LogOptions options;
  options.standard_error = false;
  return options;
}

TEST_CASE("event writer: the version comes first, then the points with tag, value and step, zeros too") {
  Logger log("worker 0", Quiet());
  ExitHooks hooks;
  std::string path;
  {
    EventWriter writer(testing::NewDirectory(), hooks, log);
    path = writer.path();
    writer.Add("loss", 0.5, "");
    writer.Add("staleness", 0, "");
    writer.WriteScalars(7, Clock::now());
    writer.Add("loss", 0.25, "");
    writer.WriteScalars(9, Clock::now());
  }
  const std::vector<event::Event> events = ReadEvents(path);
  REQUIRE(events.size() == 3);
  CHECK(events[0].file_version() == "brain.Event:2");
  CHECK(events[1].step() == 7);
  REQUIRE(events[1].summary().value_size() == 2);
  CHECK(events[1].summary().value(0).tag() == "loss");
  CHECK(events[1].summary().value(0).simple_value() == 0.5f);
  CHECK(events[1].summary().value(1).value_case() == event::Summary::Value::kSimpleValue);
  CHECK(events[2].step() == 9);
  REQUIRE(events[2].summary().value_size() == 1);
  CHECK(events[2].wall_time() >= events[1].wall_time());
}

TEST_CASE("event writer: a description goes with the first point of its curve, with the class of a scalar") {
  Logger log("worker 0", Quiet());
  ExitHooks hooks;
  EventWriter writer(testing::NewDirectory(), hooks, log);
  constexpr char kText[] = "The loss.";
  for (const int step : {1, 2}) {
    writer.Add("loss", 1, kText);
    writer.WriteScalars(step, Clock::now());
  }
  writer.Flush();
  const std::vector<event::Event> events = ReadEvents(writer.path());
  REQUIRE(events.size() == 3);
  const event::SummaryMetadata& metadata = events[1].summary().value(0).metadata();
  CHECK(metadata.summary_description() == kText);
  CHECK(metadata.plugin_data().plugin_name() == "scalars");
  CHECK(metadata.data_class() == event::SummaryMetadata::SCALAR);
  CHECK_FALSE(events[2].summary().value(0).has_metadata());
}

TEST_CASE(
    "event writer: files are read in the order of their starts, also within a second and behind a later "
    "clock") {
  using Order = EventWriter::Order;
  Logger log("worker 0", Quiet());
  ExitHooks hooks;
  const std::string directory = testing::NewDirectory();
  std::vector<std::string> first, last;
  for (int start = 0; start < 3; ++start) {
    for (const Order order : {Order::kLast, Order::kFirst}) {
      const std::string path = EventWriter(directory, hooks, log, order).path();
      order == Order::kLast ? void(last.push_back(path)) : void(first.insert(first.begin(), path));
    }
    if (start == 1) {
      last.push_back(directory + "/events.out.tfevents.9100000000.other.1.0");
      std::ofstream(last.back()).put(' ');
      std::ofstream(directory + "/events.out.tfevents.99999999999999999999.x").put(' ');  // another program's
    }
  }
  std::vector<std::string> all = first;
  all.insert(all.end(), last.begin(), last.end());
  CHECK(std::is_sorted(all.begin(), all.end()));
  CHECK(last.back().find("/events.out.tfevents.9100000001.") != std::string::npos);
}

TEST_CASE("event writer: points wait in memory for about a second") {
  Logger log("worker 0", Quiet());
  ExitHooks hooks;
  EventWriter writer(testing::NewDirectory(), hooks, log);
  const TimePoint now = Clock::now();
  writer.Add("loss", 1, "");
  writer.WriteScalars(1, now);
  CHECK(ReadEvents(writer.path()).size() == 1);
  writer.Add("loss", 1, "");
  writer.WriteScalars(2, now + milliseconds(1500));
  CHECK(ReadEvents(writer.path()).size() == 3);
}

TEST_CASE("event writer: an exit hook writes the points that wait") {
  static Logger log("worker 0", Quiet());
  static ExitHooks hooks;
  // For ever: after the hook it is locked until the process ends.
  static EventWriter& writer = *new EventWriter(testing::NewDirectory(), hooks, log);
  writer.Add("loss", 1, "");
  writer.WriteScalars(1, Clock::now());
  hooks.Run();
  CHECK(ReadEvents(writer.path()).size() == 2);
}

TEST_CASE("event writer: two of one process and second have files of their own, named as TensorBoard looks") {
  Logger log("worker 0", Quiet());
  ExitHooks hooks;
  const std::string directory = testing::NewDirectory();
  const EventWriter first(directory, hooks, log), second(directory, hooks, log);
  CHECK(first.path() != second.path());
  const std::string name = first.path().substr(directory.size() + 1);
  CHECK(name.find("events.out.tfevents.") == 0);
  CHECK(name.find('.', 20) == 30);  // ten digits of the time
}

TEST_CASE("event writer: a directory that cannot be made is the user's error, by key and path") {
  Logger log("worker 0", Quiet());
  ExitHooks hooks;
  CHECK_THROWS_WITH_AS(EventWriter("/proc/nowhere", hooks, log), doctest::Contains("/proc/nowhere/events"),
                       UserError);
  CHECK_THROWS_WITH_AS(EventWriter("/proc/nowhere", hooks, log), doctest::Contains("summary.dir"), UserError);
}

TEST_CASE("record file: a record of 24 bytes begins as every event file of the world does") {
  const std::string path = testing::NewDirectory() + "/file";
  RecordFile file;
  REQUIRE(file.Create(path) == 0);
  file.Append(std::string(24, 'x'));
  CHECK(testing::FileContent(path).empty());
  CHECK(file.Flush() == 0);
  const std::string content = testing::FileContent(path);
  REQUIRE(content.size() == 24 + 16);
  CHECK(content.substr(0, 12) == std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  CHECK(content.substr(12, 24) == std::string(24, 'x'));
}

TEST_CASE("record file: one that is there already is left alone") {
  const std::string path = testing::NewDirectory() + "/file";
  std::ofstream(path) << "mine";
  RecordFile file;
  CHECK(file.Create(path) == EEXIST);
  file.Append("theirs");
  CHECK(file.Flush() == 0);
  CHECK(testing::FileContent(path) == "mine");
}

TEST_CASE("record file: a write that fails is told once, and later ones do nothing") {
  const std::string path = testing::NewDirectory() + "/file";
  RecordFile file;
  REQUIRE(file.Create(path) == 0);
  file.Append(std::string(200, 'x'));
  {
    const FileLimit limit(100);
    CHECK(file.Flush() == EFBIG);
  }
  file.Append("more");
  CHECK(file.waiting_bytes() == 0);
  CHECK(file.Flush() == 0);
}

}  // namespace

}  // namespace dtrain
