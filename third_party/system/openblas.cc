// The functions of OpenBLAS that are used here, by its own names. The library is loaded with the first of
// them: a ps, the parent of local tasks and most commands call none, and loading takes 2 ms and 2 MiB.
// Thread: any.
#include <cblas.h>
#include <dlfcn.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace {

std::atomic<int> threads{0};  // 0: as OpenBLAS chooses
std::atomic<bool> loaded{false};

// Throws std::runtime_error if the library cannot be loaded.
void* Load() {
  void* const library = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(std::string("OpenBLAS cannot be loaded: ") + dlerror() +
                             ". Install libopenblas0-pthread.");
  }
  loaded = true;
  const auto set_threads =
      reinterpret_cast<decltype(&openblas_set_num_threads)>(dlsym(library, "openblas_set_num_threads"));
  if (threads > 0) set_threads(threads);
  return library;
}

void* Find(const char* name) {
  static void* const library = Load();
  void* const found = dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(std::string("OpenBLAS has no function ") + name);
  return found;
}

template <typename Function>
Function* Real(Function*, const char* name) {
  return reinterpret_cast<Function*>(Find(name));
}

}  // namespace

void openblas_set_num_threads(int count) {
  threads = count;
  if (!loaded) return;
  static auto* const real = Real(&openblas_set_num_threads, "openblas_set_num_threads");
  real(count);
}

int openblas_get_num_threads() {
  const int count = threads;
  return count > 0 ? count : Real(&openblas_get_num_threads, "openblas_get_num_threads")();
}

char* openblas_get_config() { return Real(&openblas_get_config, "openblas_get_config")(); }

char* openblas_get_corename() { return Real(&openblas_get_corename, "openblas_get_corename")(); }

void cblas_sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE transpose_a, CBLAS_TRANSPOSE transpose_b, blasint m,
                 blasint n, blasint k, float alpha, const float* a, blasint lda, const float* b, blasint ldb,
                 float beta, float* c, blasint ldc) {
  static auto* const real = Real(&cblas_sgemm, "cblas_sgemm");
  real(order, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void cblas_sgemv(CBLAS_ORDER order, CBLAS_TRANSPOSE transpose, blasint m, blasint n, float alpha,
                 const float* a, blasint lda, const float* x, blasint incx, float beta, float* y,
                 blasint incy) {
  static auto* const real = Real(&cblas_sgemv, "cblas_sgemv");
  real(order, transpose, m, n, alpha, a, lda, x, incx, beta, y, incy);
}
