#include "gpu/cuda/cudart/cudart_runtime.h"

#include <fmt/core.h>

#include <cstdlib>
#include <thread>

#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {
namespace {

// The device that cudaSetDevice() last set in this thread. Only this file sets it (cuBLAS restores what it
// changes), so most calls can skip it; each would take a lock of the runtime.
thread_local int current_device = -1;

std::string NameOf(int device) {
  cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, device) == cudaSuccess ? properties.name : "?";
}

}  // namespace

void Check(cudaError_t error, int device, const char* call) {
  if (error == cudaSuccess) return;
  Forget(error);
  throw DeviceError(
      fmt::format("cuda {} ({}): {}: {}", device, NameOf(device), call, cudaGetErrorString(error)));
}

void Forget(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
}

bool TryMakeCurrent(int device) {
  if (current_device == device) return true;
  const cudaError_t error = cudaSetDevice(device);
  Forget(error);
  if (error == cudaSuccess) current_device = device;
  return error == cudaSuccess;
}

void MakeCurrent(int device) {
  if (current_device == device) return;
  Check(cudaSetDevice(device), device, "cudaSetDevice");
  current_device = device;
}

// CudartRuntime: its devices, streams and events. The rest is in cudart_memory.cc and cudart_work.cc.

namespace {

std::string VersionText(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// Returns the version of the installed driver; 0 if there is none.
int DriverVersion() {
  int version = 0;
  Forget(cudaDriverGetVersion(&version));
  return version;
}

int RuntimeVersion() {
  int version = 0;
  Forget(cudaRuntimeGetVersion(&version));
  return version;
}

// Returns why there are no devices, from the answer of cudaGetDeviceCount().
std::string WhyNone(cudaError_t error) {
  const int driver = DriverVersion();
  if (driver == 0) return "no driver";
  if (error == cudaErrorInsufficientDriver) {
    return fmt::format("the driver is for CUDA {}, this program needs one for {}", VersionText(driver),
                       VersionText(RuntimeVersion()));
  }
  if (error != cudaSuccess && error != cudaErrorNoDevice) return cudaGetErrorString(error);
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? "no device in the machine"
                            : fmt::format("CUDA_VISIBLE_DEVICES is \"{}\"", visible);
}

// The runtime answers this without making a context.
DeviceInfo InfoOf(int device) {
  cudaDeviceProp properties;
  Check(cudaGetDeviceProperties(&properties, device), device, "cudaGetDeviceProperties");
  char pci[32] = "";
  Check(cudaDeviceGetPCIBusId(pci, sizeof(pci), device), device, "cudaDeviceGetPCIBusId");
  DeviceInfo info;
  info.id = device;
  info.name = properties.name;
  info.major = properties.major;
  info.minor = properties.minor;
  info.pci = pci;
  info.total_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  info.multiprocessors = properties.multiProcessorCount;
  return info;
}

}  // namespace

CudartRuntime::~CudartRuntime() {
  for (cudaMemPool_t const pool : pools_) {
    if (pool != nullptr) Forget(cudaMemPoolDestroy(pool));
  }
}

std::vector<DeviceInfo> CudartRuntime::Devices(std::string* why) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  Forget(error);
  *why = error != cudaSuccess || count == 0 ? WhyNone(error) : "";
  std::vector<DeviceInfo> infos;
  if (error != cudaSuccess) return infos;
  for (int device = 0; device < count; ++device) infos.push_back(InfoOf(device));
  return infos;
}

std::string CudartRuntime::WhyNoBlas() { return cublas_.WhyNot(); }

std::string CudartRuntime::Versions() {
  const int driver = DriverVersion();
  const std::string cublas = cublas_.Version();
  return fmt::format("CUDA runtime {}, {}, {}", VersionText(RuntimeVersion()),
                     driver == 0 ? "no driver" : "driver " + VersionText(driver),
                     cublas.empty() ? "no cuBLAS" : "cuBLAS " + cublas);
}

CudartRuntime::Stream& CudartRuntime::Use(StreamHandle handle) {
  auto& stream = *reinterpret_cast<Stream*>(handle);
  MakeCurrent(stream.device);
  return stream;
}

CudartRuntime::Event& CudartRuntime::Use(EventHandle handle) {
  auto& event = *reinterpret_cast<Event*>(handle);
  MakeCurrent(event.device);
  return event;
}

StreamHandle CudartRuntime::NewStream(int device) {
  MakeCurrent(device);
  auto stream = std::make_unique<Stream>(Stream{device, nullptr, PoolOf(device)});
  Check(cudaStreamCreateWithFlags(&stream->stream, cudaStreamNonBlocking), device, "cudaStreamCreate");
  return StreamHandle{reinterpret_cast<uintptr_t>(stream.release())};
}

void CudartRuntime::Delete(StreamHandle handle) {
  const std::unique_ptr<Stream> stream(reinterpret_cast<Stream*>(handle));
  if (TryMakeCurrent(stream->device)) Forget(cudaStreamDestroy(stream->stream));
}

void CudartRuntime::Wait(StreamHandle handle) {
  const Stream& stream = Use(handle);
  Check(cudaStreamSynchronize(stream.stream), stream.device, "cudaStreamSynchronize");
}

// With timing: it costs a device no more than the store of the record.
EventHandle CudartRuntime::NewEvent(int device) {
  MakeCurrent(device);
  auto event = std::make_unique<Event>(Event{device, nullptr});
  Check(cudaEventCreateWithFlags(&event->event, cudaEventDefault), device, "cudaEventCreate");
  return EventHandle{reinterpret_cast<uintptr_t>(event.release())};
}

void CudartRuntime::Delete(EventHandle handle) {
  const std::unique_ptr<Event> event(reinterpret_cast<Event*>(handle));
  if (TryMakeCurrent(event->device)) Forget(cudaEventDestroy(event->event));
}

void CudartRuntime::Record(EventHandle event, StreamHandle handle) {
  const Stream& stream = Use(handle);
  Check(cudaEventRecord(reinterpret_cast<Event*>(event)->event, stream.stream), stream.device,
        "cudaEventRecord");
}

void CudartRuntime::WaitFor(StreamHandle handle, EventHandle event) {
  const Stream& stream = Use(handle);
  Check(cudaStreamWaitEvent(stream.stream, reinterpret_cast<Event*>(event)->event, 0), stream.device,
        "cudaStreamWaitEvent");
}

void CudartRuntime::Wait(EventHandle handle) {
  const Event& event = Use(handle);
  Check(cudaEventSynchronize(event.event), event.device, "cudaEventSynchronize");
}

bool CudartRuntime::Done(EventHandle handle) {
  const Event& event = Use(handle);
  const cudaError_t error = cudaEventQuery(event.event);
  if (error == cudaErrorNotReady) {
    Forget(error);
    return false;
  }
  Check(error, event.device, "cudaEventQuery");
  return true;
}

double CudartRuntime::Milliseconds(EventHandle begin, EventHandle end) {
  const Event& event = Use(end);
  float milliseconds = 0;
  Check(cudaEventElapsedTime(&milliseconds, reinterpret_cast<Event*>(begin)->event, event.event),
        event.device, "cudaEventElapsedTime");
  return milliseconds;
}

// Yields instead of spinning, because the threads that move messages may need this core.
void CudartRuntime::Relax() { std::this_thread::yield(); }

std::unique_ptr<Runtime> MakeRuntime() { return std::make_unique<CudartRuntime>(); }

}  // namespace dtrain::gpu::cuda
