// The part of FakeRuntime that computes: copies, kernels and products.
#include <cblas.h>

#include <cstring>

#include "base/check.h"
#include "gpu/cuda/fake/fake_runtime.h"
#include "gpu/cuda/fake/grid.h"

namespace dtrain::gpu::cuda {
namespace {

constexpr size_t kWorkspaceBytes = 4096;

// Copies a word by one store, as a device does: another thread may be polling it.
void CopyBytes(void* to, const void* from, size_t bytes) {
  const bool aligned = reinterpret_cast<uintptr_t>(to) % bytes == 0;
  if (bytes == sizeof(uint64_t) && aligned) {
    uint64_t word;
    std::memcpy(&word, from, sizeof(word));
    __atomic_store_n(static_cast<uint64_t*>(to), word, __ATOMIC_RELEASE);
  } else if (bytes == sizeof(uint32_t) && aligned) {
    uint32_t word;
    std::memcpy(&word, from, sizeof(word));
    __atomic_store_n(static_cast<uint32_t*>(to), word, __ATOMIC_RELEASE);
  } else {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace

void FakeRuntime::Copy(StreamHandle stream, void* to, const void* from, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes == 0) return;
  ThrowIfFails(FakeCall::kCopy, stream);
  const Place to_place = PlaceOf(to, bytes);
  const Place from_place = PlaceOf(from, bytes);
  const auto* const source = static_cast<const char*>(from);
  const auto* const target = static_cast<const char*>(to);
  DT_CHECK(target + bytes <= source || source + bytes <= target, "a copy onto itself", bytes);
  if (to_place == Place::kPlain || from_place == Place::kPlain) {
    queues_.RefuseInCapture(stream, "cudaMemcpyAsync of pageable memory");
  }
  if (from_place == Place::kPlain) {
    // Reads now and writes in the stream's order.
    queues_.Add(stream, [this, to, to_place, copy = std::vector<char>(source, source + bytes)] {
      RunCopy(to, to_place, copy.data(), Place::kPlain, copy.size());
    });
  } else {
    queues_.Add(stream, [=] { RunCopy(to, to_place, from, from_place, bytes); });
  }
  if (to_place != Place::kPlain) return;
  const Running running(*this);
  queues_.Run(stream);
}

void FakeRuntime::RunCopy(void* to, Place to_place, const void* from, Place from_place, size_t bytes) {
  if (to_place != Place::kPlain)
    DT_CHECK(PlaceOf(to, bytes, true) == to_place, "freed before the copy was done");
  if (from_place != Place::kPlain) {
    DT_CHECK(PlaceOf(from, bytes, true) == from_place, "freed before the copy was done");
  }
  OpenAll();
  CopyBytes(to, from, bytes);
  const auto count = static_cast<int64_t>(bytes);
  if (to_place == Place::kDevice && from_place == Place::kDevice) {
    counts_.bytes_between_devices += count;
  } else if (to_place == Place::kDevice) {
    counts_.bytes_to_device += count;
  } else if (from_place == Place::kDevice) {
    counts_.bytes_from_device += count;
  }
}

void FakeRuntime::Fill(StreamHandle stream, void* memory, int byte, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes == 0) return;
  ThrowIfFails(FakeCall::kFill, stream);
  const Place place = PlaceOf(memory, bytes);
  DT_CHECK(place != Place::kPlain, "a device cannot reach this", bytes);
  queues_.Add(stream, [=] {
    DT_CHECK(PlaceOf(memory, bytes, true) == place, "freed before it was filled");
    OpenAll();
    std::memset(memory, byte, bytes);
  });
}

void FakeRuntime::Launch(StreamHandle stream, const Grid& grid, Kernel kernel, const void* arguments) {
  const std::lock_guard lock(mutex_);
  GridRunner::CheckGrid(grid);
  ThrowIfFails(FakeCall::kLaunch, stream);
  const FakeKernel& fake = FakeKernelOf(kernel);
  const auto* const bytes = static_cast<const char*>(arguments);
  ++counts_.launches;
  queues_.Add(stream, [this, &fake, grid, device = queues_.DeviceOf(stream),
                       body = std::vector<char>(bytes, bytes + fake.bytes)] {
    Open(device);
    fake.run(grid_runner_, grid, body.data());
    ++counts_.kernels;
  });
}

BlasHandle FakeRuntime::NewBlas(StreamHandle stream, bool) {
  const std::lock_guard lock(mutex_);
  queues_.RefuseInCapture(stream, "cublasCreate");
  queues_.RefuseInCapture("cublasCreate");
  ThrowIfFails(FakeCall::kNewBlas, stream);
  void* const workspace = AllocateBlock(stream, kWorkspaceBytes);
  if (workspace == nullptr) throw DeviceError("fake: cublasCreate: out of memory");
  blas_[++last_blas_] = {stream, workspace};
  return BlasHandle{last_blas_};
}

void FakeRuntime::Delete(BlasHandle blas) {
  const std::lock_guard lock(mutex_);
  const auto at = blas_.find(static_cast<uint64_t>(blas));
  DT_CHECK(at != blas_.end(), "no cuBLAS handle, or none any more");
  FreeBlock(at->second.stream, at->second.workspace);
  blas_.erase(at);
}

void FakeRuntime::Multiply(BlasHandle blas, const Product& product) {
  const std::lock_guard lock(mutex_);
  const auto at = blas_.find(static_cast<uint64_t>(blas));
  DT_CHECK(at != blas_.end(), "no cuBLAS handle, or none any more");
  const StreamHandle stream = at->second.stream;
  ThrowIfFails(FakeCall::kMultiply, stream);
  const int device = queues_.DeviceOf(stream);
  CheckProduct(device, product, false);
  queues_.Add(stream, [=] { RunProduct(device, product); });
}

void FakeRuntime::CheckProduct(int device, const Product& product, bool queued) const {
  const auto [m, n, k] = std::array<int64_t, 3>{product.m, product.n, product.k};
  DT_CHECK(m > 0 && n > 0 && k > 0, m, n, k);
  const auto check = [&](const float* matrix, int64_t elements) {
    CheckOnDevice(device, matrix, static_cast<size_t>(elements) * sizeof(float), queued);
  };
  check(product.a, m * k);
  check(product.b, k * n);
  check(product.c, m * n);
}

void FakeRuntime::RunProduct(int device, const Product& product) {
  CheckProduct(device, product, true);
  Open(device);
  const int m = static_cast<int>(product.m), n = static_cast<int>(product.n), k = static_cast<int>(product.k);
  cblas_sgemm(CblasRowMajor, product.transpose_a ? CblasTrans : CblasNoTrans,
              product.transpose_b ? CblasTrans : CblasNoTrans, m, n, k, 1.0f, product.a,
              product.transpose_a ? m : k, product.b, product.transpose_b ? k : n, product.add ? 1.0f : 0.0f,
              product.c, n);
  ++counts_.products;
}

}  // namespace dtrain::gpu::cuda
