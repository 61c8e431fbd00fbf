#include "gpu/cuda/device.h"

namespace dtrain::gpu::cuda {
namespace {

// The first rounds up, for sizes that are needed; the second rounds down, for sizes that are available.
int64_t MiBUp(int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }
int64_t MiBDown(int64_t bytes) { return bytes >> 20; }

std::string NameOf(const DeviceInfo& info) { return fmt::format("cuda {} ({})", info.id, info.name); }

}  // namespace

Device::Device(Runtime& runtime, const DeviceInfo& info, double memory_fraction, bool tf32)
    : runtime_(runtime),
      info_(info),
      memory_fraction_(memory_fraction),
      limit_bytes_(static_cast<int64_t>(static_cast<double>(info.total_bytes) * memory_fraction)),
      tf32_(tf32) {}

void* Device::Allocate(StreamHandle stream, int64_t bytes, const char* what) {
  // Counted before the allocation, so that two threads cannot pass the limit together.
  const int64_t used = used_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  try {
    if (bytes > limit_bytes_ - used) {
      throw UserError(
          "{}: {} MiB for {}, but of the {} MiB that device.memory_fraction = {} allows {} MiB are in use. "
          "Raise it, or use a smaller model or batch.",
          NameOf(info_), MiBUp(bytes), what, MiBDown(limit_bytes_), memory_fraction_, MiBUp(used));
    }
    void* const memory = runtime_.Allocate(stream, static_cast<size_t>(bytes));
    if (memory != nullptr) return memory;
    throw UserError(
        "{}: {} MiB for {}, but of its {} MiB only {} MiB are free, and this task uses {} MiB. End what "
        "else uses the device, or use a smaller model or batch; device.memory_fraction = {} would allow "
        "more.",
        NameOf(info_), MiBUp(bytes), what, MiBDown(info_.total_bytes), MiBDown(runtime_.FreeBytes(info_.id)),
        MiBUp(used), memory_fraction_);
  } catch (...) {
    used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    throw;
  }
}

void Device::Free(StreamHandle stream, void* memory, int64_t bytes) {
  runtime_.Free(stream, memory);
  used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace dtrain::gpu::cuda
