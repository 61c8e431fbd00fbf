// The part of CudartRuntime that computes: kernels, products and graphs.
#include "gpu/cuda/cudart/cudart_runtime.h"
#include "gpu/cuda/cudart/kernels.h"

namespace dtrain::gpu::cuda {
namespace {

// The largest size that NVIDIA recommends for Hopper. A workspace of our own lets products be captured and
// makes their results independent of what else runs.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

}  // namespace

CudartRuntime::Graph& CudartRuntime::Use(GraphHandle handle) { return *reinterpret_cast<Graph*>(handle); }

CudartRuntime::Blas& CudartRuntime::Use(BlasHandle handle) {
  auto& blas = *reinterpret_cast<Blas*>(handle);
  MakeCurrent(blas.device);
  return blas;
}

void CudartRuntime::Launch(StreamHandle handle, const Grid& grid, Kernel kernel, const void* arguments) {
  const Stream& stream = Use(handle);
  void* parameters[] = {const_cast<void*>(arguments)};
  Check(cudaLaunchKernel(FunctionOf(kernel), dim3(static_cast<unsigned>(grid.blocks)),
                         dim3(static_cast<unsigned>(grid.threads)), parameters, 0, stream.stream),
        stream.device, "cudaLaunchKernel");
}

BlasHandle CudartRuntime::NewBlas(StreamHandle handle, bool tf32) {
  const std::lock_guard no_capture(capture_);
  const Stream& stream = Use(handle);
  auto blas = std::make_unique<Blas>(Blas{stream.device, stream.stream, nullptr, nullptr});
  blas->workspace = Allocate(handle, kWorkspaceBytes);
  if (blas->workspace == nullptr) Check(cudaErrorMemoryAllocation, stream.device, "the workspace of cuBLAS");
  try {
    blas->handle = cublas_.NewHandle(stream.stream, blas->workspace, kWorkspaceBytes, tf32);
  } catch (...) {
    Free(handle, blas->workspace);
    throw;
  }
  return BlasHandle{reinterpret_cast<uintptr_t>(blas.release())};
}

void CudartRuntime::Delete(BlasHandle handle) {
  const std::lock_guard no_capture(capture_);
  const std::unique_ptr<Blas> blas(reinterpret_cast<Blas*>(handle));
  if (!TryMakeCurrent(blas->device)) return;
  cublas_.Delete(blas->handle);
  Forget(cudaFreeAsync(blas->workspace, blas->stream));
}

void CudartRuntime::Multiply(BlasHandle handle, const Product& product) {
  cublas_.Multiply(Use(handle).handle, product);
}

void CudartRuntime::BeginCapture(StreamHandle handle) {
  const Stream& stream = Use(handle);
  std::unique_lock no_other(capture_);
  Check(cudaStreamBeginCapture(stream.stream, cudaStreamCaptureModeThreadLocal), stream.device,
        "cudaStreamBeginCapture");
  Use(handle).capture = std::move(no_other);
}

GraphHandle CudartRuntime::EndCapture(StreamHandle handle) {
  const auto ended = std::move(Use(handle).capture);
  const Stream& stream = Use(handle);
  auto graph = std::make_unique<Graph>(Graph{stream.device, nullptr});
  cudaGraph_t captured = nullptr;
  Check(cudaStreamEndCapture(stream.stream, &captured), stream.device, "cudaStreamEndCapture");
  const cudaError_t error = cudaGraphInstantiate(&graph->graph, captured, 0);
  Forget(cudaGraphDestroy(captured));
  Check(error, stream.device, "cudaGraphInstantiate");
  const GraphHandle made{reinterpret_cast<uintptr_t>(graph.release())};
  // Uploaded now and not at the first launch.
  const cudaError_t uploaded = cudaGraphUpload(reinterpret_cast<Graph*>(made)->graph, stream.stream);
  if (uploaded != cudaSuccess) Delete(made);
  Check(uploaded, stream.device, "cudaGraphUpload");
  return made;
}

void CudartRuntime::AbortCapture(StreamHandle handle) {
  auto& stream = *reinterpret_cast<Stream*>(handle);
  const auto ended = std::move(stream.capture);
  if (!ended.owns_lock() || !TryMakeCurrent(stream.device)) return;
  cudaGraph_t captured = nullptr;
  Forget(cudaStreamEndCapture(stream.stream, &captured));
  if (captured != nullptr) Forget(cudaGraphDestroy(captured));
}

void CudartRuntime::Launch(StreamHandle handle, GraphHandle graph) {
  const Stream& stream = Use(handle);
  Check(cudaGraphLaunch(reinterpret_cast<Graph*>(graph)->graph, stream.stream), stream.device,
        "cudaGraphLaunch");
}

void CudartRuntime::Delete(GraphHandle handle) {
  const std::unique_ptr<Graph> graph(reinterpret_cast<Graph*>(handle));
  if (TryMakeCurrent(graph->device)) Forget(cudaGraphExecDestroy(graph->graph));
}

}  // namespace dtrain::gpu::cuda
