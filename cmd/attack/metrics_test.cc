// Floods at the port of the metrics, where readers need no keys. The run must go on with little memory, and
// must serve those who read afterwards.
#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cmd/testing/honest_run.h"

namespace dtrain::testing {
namespace {

constexpr int kReaders = 60;  // more than the port lets in
constexpr milliseconds kWrite{50};
constexpr milliseconds kBeside{800};
constexpr char kRequest[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

std::string AddressIn(const std::string& log) {
  const std::string before = "metrics at http://";
  const size_t begin = log.find(before);
  REQUIRE(begin != std::string::npos);
  const size_t at = begin + before.size();
  return log.substr(at, log.find("/metrics", at) - at);
}

// Reads the metrics as Prometheus does, as soon as the port has room.
bool IsServed(const std::string& address) {
  Process curl({"-sf", "--retry", "100", "--retry-all-errors", "--retry-delay", "1", "--max-time", "60",
                "http://" + address + "/metrics"},
               Program{"/usr/bin/curl", {}});
  return RunToEnd(curl) == 0 && Contains(curl.standard_output(), "dtrain_global_step");
}

TEST_CASE("attack: readers of metrics that are silent, slow, loud, or never read cost the run nothing") {
  HonestJob job;
  job.sets = {"metrics.port=0"};
  HonestRun run(job);
  REQUIRE(run.ps().WaitForLine("metrics at http://"));
  const std::string address = AddressIn(run.ps().standard_error());
  {
    std::vector<std::unique_ptr<RawPeer>> readers(kReaders);
    std::mt19937_64 random(3);
    const Flood flood([&, turn = size_t{0}]() mutable {
      std::unique_ptr<RawPeer>& reader = readers[turn++ % readers.size()];
      if (reader == nullptr || !reader->open()) reader = std::make_unique<RawPeer>(address);
      std::string said;
      switch (random() % 4) {
        case 0:
          return true;  // silent
        case 1:
          said = "G";
          break;
        case 2:
          said.assign(size_t{1} << 16, static_cast<char>(random()));
          break;
        default:
          said = kRequest;
      }
      if (!reader->Write(said, kWrite)) reader.reset();
      return true;
    });
    for (const TimePoint until = Clock::now() + kBeside; Clock::now() < until || flood.times() < 1000;) {
      run.CheckGoesOn();
    }
  }
  run.CheckMemory(kReaders);
  CHECK(IsServed(address));
  run.CheckEnds();
}

}  // namespace
}  // namespace dtrain::testing
