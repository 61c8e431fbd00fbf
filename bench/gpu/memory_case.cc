// An operation beside a copy of as many bytes. A call moves several times what the caches hold, so that each
// one finds them full of other things.
#include <memory>

#include "bench/gpu/gpu_cases.h"
#include "bench/report/turns.h"

namespace dtrain::bench {
namespace {

constexpr int kRepeats = 20;
constexpr double kBytesOfGigabyte = 1e9;

double GigabytesPerSecond(int64_t bytes, double milliseconds) {
  return static_cast<double>(bytes) / kBytesOfGigabyte / (milliseconds / 1000);
}

// Reads half of the bytes and writes the other half.
std::function<void()> Copy(Gpu& gpu, int64_t bytes) {
  struct Data {
    gpu::cuda::Buffer<float> from, to;
  };
  const int64_t floats = bytes / 2 / static_cast<int64_t>(sizeof(float));
  auto data = std::make_shared<Data>(Data{gpu.Floats(floats), gpu.Empty<float>(floats)});
  return [&gpu, data] { gpu.queue().Copy(data->to.data(), data->from.data(), data->to.bytes()); };
}

std::vector<Row> Measure(const GpuSettings& settings, Gpu& gpu, const MemoryOperation& operation) {
  Row row = {operation.name, operation.what, "GB/s", "0.8", false, {}, {}, {}, {}};
  const int repeats = settings.repeats(kRepeats);
  const auto turn = [&](const std::function<void()>& work, std::vector<double>* speeds) {
    speeds->push_back(GigabytesPerSecond(operation.bytes, gpu.Milliseconds(repeats, work)));
  };
  const std::function<void()> ours = operation.prepare(), limit = Copy(gpu, operation.bytes);
  gpu.Milliseconds(2, ours);
  gpu.Milliseconds(2, limit);
  TakeTurns(
      settings.report.rounds, [&] { turn(ours, &row.dtrain); }, [&] { turn(limit, &row.limit); });
  return {row};
}

}  // namespace

Case MemoryCase(const GpuSettings& settings, Gpu& gpu, const MemoryOperation& operation) {
  return {{operation.name}, [&settings, &gpu, operation] { return Measure(settings, gpu, operation); }};
}

}  // namespace dtrain::bench
