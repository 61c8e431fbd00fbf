#include "trainer/summary/event_writer.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "trainer/summary/event_test_util.h"

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
    writer.Add("cost", 0.5);
    writer.Add("staleness", 0);
    writer.WriteScalars(7, Clock::now());
    writer.Add("cost", 0.25);
    writer.WriteScalars(9, Clock::now());
  }
  const std::vector<event::Event> events = ReadEvents(path);
  REQUIRE(events.size() == 3);
  CHECK(events[0].file_version() == "brain.Event:2");
  CHECK(events[1].step() == 7);
  REQUIRE(events[1].summary().value_size() == 2);
  CHECK(events[1].summary().value(0).tag() == "cost");
  CHECK(events[1].summary().value(0).simple_value() == 0.5f);
  CHECK(events[1].summary().value(1).value_case() == event::Summary::Value::kSimpleValue);
  CHECK(events[2].step() == 9);
  REQUIRE(events[2].summary().value_size() == 1);
  CHECK(events[2].wall_time() >= events[1].wall_time());
}

TEST_CASE("event writer: points wait in memory for about a second") {
  Logger log("worker 0", Quiet());
  ExitHooks hooks;
  EventWriter writer(testing::NewDirectory(), hooks, log);
  const TimePoint now = Clock::now();
  writer.Add("cost", 1);
  writer.WriteScalars(1, now);
  CHECK(ReadEvents(writer.path()).size() == 1);
  writer.Add("cost", 1);
  writer.WriteScalars(2, now + milliseconds(1500));
  CHECK(ReadEvents(writer.path()).size() == 3);
}

TEST_CASE("event writer: an exit hook writes the points that wait") {
  static Logger log("worker 0", Quiet());
  static ExitHooks hooks;
  // For ever: after the hook it is locked until the process ends.
  static EventWriter& writer = *new EventWriter(testing::NewDirectory(), hooks, log);
  writer.Add("cost", 1);
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

}  // namespace
}  // namespace dtrain
