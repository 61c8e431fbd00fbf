#include "trainer/summary/event_reader.h"

#include <errno.h>
#include <fmt/core.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/tfrecord.h"
#include "trainer/summary/event.pb.h"

namespace dtrain {
namespace {

// The largest records that dtrain writes are graphs; a file from somebody else may claim any length.
constexpr uint64_t kMaxRecordBytes = 64 << 20;

uint64_t LittleEndian(const char* bytes, int count) {
  uint64_t value = 0;
  for (int i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

std::string ReadRecords(const std::string& path, const std::function<void(std::string_view)>& visit) {
  std::error_code failed;
  const uint64_t size = std::filesystem::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  if (failed || !file) return "cannot be read: " + ErrnoText(failed ? failed.value() : errno);
  const auto wrong = [](const char* what, uint64_t at) {
    return fmt::format("{} in the record at byte {}", what, at);
  };
  std::string record;
  for (uint64_t at = 0; at < size; at += kTfrecordHead + record.size()) {
    char head[kTfrecordHead];
    if (!file.read(head, kTfrecordHead)) return wrong("cut off", at);
    if (LittleEndian(head + 8, 4) != MaskedCrc({head, 8})) return wrong("damaged", at);
    const uint64_t bytes = LittleEndian(head, 8);
    if (bytes > kMaxRecordBytes) return wrong("more than 64 MiB", at);
    if (bytes > size || at + kTfrecordHead + bytes + kTfrecordTail > size) return wrong("cut off", at);
    record.resize(bytes + kTfrecordTail);
    if (!file.read(record.data(), static_cast<std::streamsize>(record.size()))) return wrong("cut off", at);
    const std::string_view content(record.data(), bytes);
    if (LittleEndian(record.data() + bytes, 4) != MaskedCrc(content)) return wrong("damaged", at);
    visit(content);
  }
  return "";
}

std::string ReadCurves(const std::string& path,
                       const std::function<void(const std::string&, const CurvePoint&)>& visit) {
  event::Event event;
  return ReadRecords(path, [&](std::string_view record) {
    if (!event.ParseFromArray(record.data(), static_cast<int>(record.size()))) return;
    for (const event::Summary::Value& value : event.summary().value()) {
      if (value.value_case() != event::Summary::Value::kSimpleValue) continue;
      visit(value.tag(), {event.step(), event.wall_time(), static_cast<double>(value.simple_value())});
    }
  });
}

}  // namespace dtrain
