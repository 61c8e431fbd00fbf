// ExitHooks: what a process has still to write when a signal ends it at once, while other threads are in the
// middle of things. Owner: the command. Thread: any.
#pragma once

#include <functional>
#include <list>
#include <mutex>

namespace dtrain {

class ExitHooks {
 public:
  // Registered while it lives; its end waits for a Run() under way.
  class Hook {
   public:
    // `run` is called by another thread, at any time until this object is gone.
    Hook(ExitHooks& hooks, std::function<void()> run);
    ~Hook();
    Hook(const Hook&) = delete;
    Hook& operator=(const Hook&) = delete;

   private:
    ExitHooks& hooks_;
    std::list<std::function<void()>>::iterator at_;
  };

  ExitHooks() = default;
  ExitHooks(const ExitHooks&) = delete;
  ExitHooks& operator=(const ExitHooks&) = delete;

  // All that are registered, in their order. The process ends next.
  void Run();

 private:
  std::mutex mutex_;
  std::list<std::function<void()>> hooks_;
};

}  // namespace dtrain
