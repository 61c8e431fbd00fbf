// The events of a file, as the messages that were written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/summary/event.pb.h"
#include "trainer/summary/event_reader.h"

namespace dtrain {

inline std::vector<event::Event> ReadEvents(const std::string& path) {
  std::vector<event::Event> events;
  ReadRecords(path, [&](std::string_view record) {
    events.emplace_back().ParseFromArray(record.data(), static_cast<int>(record.size()));
  });
  return events;
}

}  // namespace dtrain
