// Reading event files (event_writer.h): the records of a file, and the points of its curves. A file that a
// task is writing, or that was cut off or damaged, can be read up to the first record that is not whole.
// Thread: any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace dtrain {

// Calls `visit` with each record of a RecordFile, in order, as long as their checksums are right. Returns
// what is wrong with the rest, "cut off in the record at byte 512"; empty: the file was read to its end.
std::string ReadRecords(const std::string& path, const std::function<void(std::string_view)>& visit);

struct CurvePoint {
  int64_t step = 0;
  double wall_s = 0;  // seconds since 1970
  double value = 0;
};

// Calls `visit` with each point of each curve, in the order in which they were written. Returns what
// ReadRecords() does.
std::string ReadCurves(const std::string& path,
                       const std::function<void(const std::string& tag, const CurvePoint&)>& visit);

}  // namespace dtrain
