#include "cmd/look/look.h"

#include <cblas.h>
#include <dlfcn.h>
#include <flatbuffers/base.h>
#include <fmt/core.h>
#include <google/protobuf/stubs/common.h>
#include <hwy/highway.h>
#include <xxhash.h>
#include <yaml-cpp/node/parse.h>
#include <zlib.h>
#include <zmq.h>
#include <zstd.h>
#if DTRAIN_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

#include <CLI/Version.hpp>
#include <nlohmann/json_fwd.hpp>  // has the version
#include <string_view>

#include "base/machine_memory.h"
#include "base/names.h"
#include "cmd/common/program.h"
#include "trainer/device/choice.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

std::string Commit() {
  const std::string commit = ProgramCommit();
  return commit.empty() ? "unknown (a package of scripts/package.sh knows it)" : commit;
}

std::string ZmqVersion() {
  int major = 0, minor = 0, patch = 0;
  zmq_version(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// Returns the version of the loaded library, whose text begins with "OpenBLAS 0.3.21 ...".
std::string OpenBlasVersion() {
  const std::string_view text = openblas_get_config();
  const size_t begin = text.find(' ');
  if (begin == std::string_view::npos) return std::string(text);
  return std::string(text.substr(begin + 1, text.find(' ', begin + 1) - begin - 1));
}

// The version is not in the headers but in the name of the loaded file: "libyaml-cpp.so.0.7".
std::string YamlVersion() {
  Dl_info info{};
  const auto symbol = static_cast<YAML::Node (*)(const std::string&)>(&YAML::Load);
  if (dladdr(reinterpret_cast<const void*>(symbol), &info) == 0) return "unknown";
  const std::string_view path = info.dli_fname;
  const size_t at = path.rfind(".so.");
  return at == std::string_view::npos ? "linked in" : std::string(path.substr(at + 4));
}

std::string ProtobufVersion() { return google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION); }

// Returns the versions of the libraries that are compiled in.
std::string HeaderVersions() {
  return fmt::format(
      "fmt {}.{}.{}\n"
      "Highway {}.{}.{}\n"
      "flatbuffers {}.{}.{}\n"
      "CLI11 {}\n"
      "nlohmann-json {}.{}.{}\n"
      "xxHash {}.{}.{}\n",
      FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100, HWY_MAJOR, HWY_MINOR, HWY_PATCH,
      FLATBUFFERS_VERSION_MAJOR, FLATBUFFERS_VERSION_MINOR, FLATBUFFERS_VERSION_REVISION, CLI11_VERSION,
      NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH,
      XXH_VERSION_MAJOR, XXH_VERSION_MINOR, XXH_VERSION_RELEASE);
}

// Returns the version of the linked CUDA runtime.
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
      "OpenBLAS {}\n"
      "yaml-cpp {}\n"
      "protobuf {}\n"
      "zlib {}\n"
      "zstd {}\n"
      "{}"
      "{}\n"
      "on {}: {}, kernels for {}, OpenBLAS for {}\n",
      kVersion, Commit(), ZmqVersion(), OpenBlasVersion(), YamlVersion(), ProtobufVersion(), zlibVersion(),
      ZSTD_versionString(), HeaderVersions(), CudaText(), ProcessorName(), Plural(Processors(), "processor"),
      InstructionSet(), openblas_get_corename());
}

}  // namespace dtrain
