#include "gpu/cuda/fake/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// Pushes the callee-saved registers, stores the stack pointer in *leave, and continues on the stack `enter`.
// swapcontext() would do, but makes two system calls each time, and a kernel switches once per thread.
extern "C" void DtrainSwitchStack(void** leave, void* enter);
extern "C" void DtrainFiberEntry();
extern "C" void DtrainFiberMain(void* fiber);
asm(R"(
.text
.globl DtrainSwitchStack
.type DtrainSwitchStack, @function
DtrainSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size DtrainSwitchStack, .-DtrainSwitchStack
.globl DtrainFiberEntry
.type DtrainFiberEntry, @function
DtrainFiberEntry:
  movq %rbx, %rdi
  call DtrainFiberMain@PLT
  ud2
.size DtrainFiberEntry, .-DtrainFiberEntry
)");

void DtrainFiberMain(void* fiber) { static_cast<dtrain::gpu::cuda::Fiber*>(fiber)->Main(); }

namespace dtrain::gpu::cuda {
namespace {

constexpr size_t kStackBytes = size_t{128} << 10;
constexpr size_t kGuardBytes = 4096;  // no access, so that a stack overflow faults

char* NewStack() {
  void* const memory = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  DT_CHECK(memory != MAP_FAILED, "no memory for a fiber");
  DT_CHECK(mprotect(memory, kGuardBytes, PROT_NONE) == 0);
  return static_cast<char*>(memory) + kGuardBytes;
}

}  // namespace

Fiber::Fiber() : stack_(NewStack()) {
  // A stack as DtrainSwitchStack() leaves it: six registers, rbx the fifth, and the return address. The entry
  // calls with the stack pointer at a multiple of 16, as the calling convention requires.
  auto** top = reinterpret_cast<void**>(stack_ + kStackBytes) - 9;
  for (int i = 0; i < 9; ++i) top[i] = nullptr;
  top[4] = this;
  top[6] = reinterpret_cast<void*>(&DtrainFiberEntry);
  at_ = top;
#if defined(__SANITIZE_THREAD__)
  tsan_fiber_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(tsan_fiber_);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
  munmap(stack_ - kGuardBytes, kStackBytes + kGuardBytes);
}

void Fiber::Start(void (*function)(void*), void* argument) {
  DT_CHECK(function_ == nullptr, "the fiber is in use");
  function_ = function;
  argument_ = argument;
}

bool Fiber::Resume() {
  DT_CHECK(function_ != nullptr);
  SwitchIn();
  return function_ != nullptr;
}

void Fiber::SwitchIn() {
#if defined(__SANITIZE_THREAD__)
  tsan_outside_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_fiber_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* outside_stack = nullptr;
  __sanitizer_start_switch_fiber(&outside_stack, stack_, kStackBytes);
#endif
  DtrainSwitchStack(&outside_, at_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(outside_stack, nullptr, nullptr);
#endif
}

void Fiber::Pause() {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(tsan_outside_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&asan_stack_, outside_bottom_, outside_size_);
#endif
  DtrainSwitchStack(&at_, outside_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(asan_stack_, &outside_bottom_, &outside_size_);
#endif
}

void Fiber::Main() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &outside_bottom_, &outside_size_);
#endif
  for (;;) {
    function_(argument_);
    function_ = nullptr;
    Pause();
  }
}

}  // namespace dtrain::gpu::cuda
