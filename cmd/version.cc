#include "cmd/version.h"

#include <cblas.h>
#include <flatbuffers/base.h>
#include <fmt/core.h>
#include <zmq.h>
#if DTRAIN_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

#include <string_view>

#include "cmd/build_commit.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

std::string ZmqVersion() {
  int major = 0, minor = 0, patch = 0;
  zmq_version(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// Of the library that is loaded: "OpenBLAS 0.3.21 ..." begins its text.
std::string OpenBlasVersion() {
  const std::string_view text = openblas_get_config();
  const size_t begin = text.find(' ');
  if (begin == std::string_view::npos) return std::string(text);
  return std::string(text.substr(begin + 1, text.find(' ', begin + 1) - begin - 1));
}

// Of the runtime that is linked in.
std::string CudaText() {
#if DTRAIN_HAVE_CUDA
  return fmt::format("with CUDA {}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
#else
  return "without CUDA";
#endif
}

}  // namespace

std::string VersionText() {
  return fmt::format(
      "dtrain {}\n"
      "commit {}\n"
      "libzmq {}\n"
      "flatbuffers {}.{}.{}\n"
      "OpenBLAS {}\n"
      "{}\n",
      kVersion, kBuildCommit, ZmqVersion(), FLATBUFFERS_VERSION_MAJOR, FLATBUFFERS_VERSION_MINOR,
      FLATBUFFERS_VERSION_REVISION, OpenBlasVersion(), CudaText());
}

}  // namespace dtrain
