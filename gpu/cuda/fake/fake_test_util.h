// Helpers for the tests of FakeRuntime.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gpu/cuda/fake/fake_runtime.h"
#include "gpu/cuda/kernels/list.h"

namespace dtrain::gpu::cuda {

constexpr int64_t kFloats = 4;
constexpr size_t kBytes = kFloats * sizeof(float);

using Floats = std::vector<float>;

// Rig: a runtime, two streams of its first device, an array of floats on that device and two in pinned
// memory.
struct Rig {
  FakeRuntime runtime;
  StreamHandle stream = runtime.NewStream(0);
  StreamHandle other = runtime.NewStream(0);
  EventHandle event = runtime.NewEvent(0);
  float* device = static_cast<float*>(runtime.Allocate(stream, kBytes));
  float* ones = static_cast<float*>(runtime.AllocatePinned(kBytes));
  float* out = static_cast<float*>(runtime.AllocatePinned(kBytes));

  Rig() {
    for (int64_t i = 0; i < kFloats; ++i) ones[i] = 1;
    runtime.Wait(stream);
  }
  ~Rig() {
    runtime.Wait(stream);
    runtime.Wait(other);
    runtime.Free(stream, device);
    runtime.FreePinned(ones);
    runtime.FreePinned(out);
    runtime.Delete(event);
    runtime.Delete(stream);
    runtime.Delete(other);
  }

  void Scale(StreamHandle where, float factor) { Scale(where, factor, device); }
  void Scale(StreamHandle where, float factor, float* values) {
    const ScaleKernel body{factor, values, kFloats};
    runtime.Launch(where, {1, 32}, KernelOf<ScaleKernel>(), &body);
  }
  void ToDevice(StreamHandle where) { runtime.Copy(where, device, ones, kBytes); }
  void ToOut(StreamHandle where) { runtime.Copy(where, out, device, kBytes); }
  Floats Out() const { return Floats(out, out + kFloats); }
};

inline bool IsPoison(const Floats& values) {
  const std::vector<unsigned char> poison(values.size() * sizeof(float), 0xff);
  return std::memcmp(values.data(), poison.data(), poison.size()) == 0;
}

// Runs `function` in a copy of this process. Returns what it wrote to stderr if a signal ended it, else "".
inline std::string DeathMessage(const std::function<void()>& function) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    // The default handlers: those of doctest and the sanitizers would report a failed test.
    for (const int number : {SIGABRT, SIGSEGV}) std::signal(number, SIG_DFL);
    function();
    _exit(0);
  }
  close(pipe_ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t count; (count = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(count));
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? text + "ended by signal" : "";
}

inline bool Says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace dtrain::gpu::cuda
