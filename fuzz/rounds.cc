#include "fuzz/rounds.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/random.h"
#include "fuzz/target.h"

// Sets what a sanitizer calls before it ends the process; null where none is linked in.
extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));
// Asked by UBSan, whose runtime is another one than ASan's with gcc and does not know the callback.
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = 4096;

std::string g_keep = "/tmp";           // where findings go
const Target* g_target = nullptr;      // the one that runs
const std::string* g_input = nullptr;  // and what it gets

void Keep() {
  if (g_input == nullptr) return;
  const std::string path =
      g_keep + "/" + g_target->name + "-" + std::to_string(std::hash<std::string>()(*g_input));
  std::ofstream(path, std::ios::binary) << *g_input;
  std::fprintf(stderr, "fuzz: %s: a finding, kept as %s\n", g_target->name.c_str(), path.c_str());
  g_input = nullptr;
}

void OnSignal(int number) {
  Keep();
  signal(number, SIG_DFL);
  raise(number);
}

std::vector<std::string> CorpusOf(const std::string& directory) {
  std::vector<std::string> files, inputs;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, none)) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    std::ifstream stream(file, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// One change of an input: bits, bytes, pieces of itself or of another.
void Change(const CounterRandom& random, const std::vector<std::string>& corpus, std::string* input) {
  const size_t at = random.Below(1, input->size() + 1);
  const size_t count = 1 + random.Below(2, 1 + random.Below(3, 32));
  const std::string& other = corpus[random.Below(4, corpus.size())];
  const size_t from = random.Below(5, other.size() + 1);
  switch (random.Below(0, 7)) {
    case 0:
      if (at < input->size()) (*input)[at] = static_cast<char>((*input)[at] ^ 1 << random.Below(6, 8));
      break;
    case 1:
      if (at < input->size()) (*input)[at] = static_cast<char>(random.Bits(6));
      break;
    case 2:
      input->erase(at, count);
      break;
    case 3:
      for (size_t i = 0; i < count; ++i) input->insert(at, 1, static_cast<char>(random.Bits(6 + i)));
      break;
    case 4:
      input->insert(at, other, from, 4 * count);
      break;
    case 5:
      *input = input->substr(0, at) + other.substr(from);
      break;
    case 6: {
      constexpr uint64_t kEdges[] = {0, UINT64_MAX, INT64_MAX, UINT32_MAX, INT32_MAX, 1, 1 << 16};
      const uint64_t edge = kEdges[random.Below(6, std::size(kEdges))];
      const size_t size = std::min<size_t>(size_t{1} << random.Below(7, 4), input->size() - at);
      std::memcpy(input->data() + at, &edge, size);
      break;
    }
  }
}

}  // namespace

void RunOne(const Target& target, const std::string& input) {
  // So that ASan finds a byte too far.
  const std::vector<uint8_t> exact(input.begin(), input.end());
  g_target = &target;
  g_input = &input;
  target.one(exact.data(), exact.size());
  g_input = nullptr;
}

void RunRounds(const Target& target, const RoundsOptions& options) {
  g_keep = options.keep;
  const uint64_t steps_before = StepsReached();
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(Keep);
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, OnSignal);
  std::vector<std::string> corpus = CorpusOf(options.corpus + "/" + target.name);
  for (const std::string& input : corpus) RunOne(target, input);
  std::printf("%s: %zu inputs of its corpus, %llu by chance\n", target.name.c_str(), corpus.size(),
              static_cast<unsigned long long>(options.runs));
  std::fflush(stdout);
  if (corpus.empty()) corpus.emplace_back();
  uint64_t seed = options.seed;
  for (const char c : target.name) seed = 31 * seed + static_cast<uint64_t>(c);
  const CounterRandom all(seed);
  for (uint64_t run = 0; run < options.runs; ++run) {
    const CounterRandom random = all.Stream(run);
    std::string input = corpus[random.Below(0, corpus.size())];
    const uint64_t changes = 1 + random.Below(1, 8);
    for (uint64_t i = 0; i < changes; ++i) Change(random.Stream(i), corpus, &input);
    input.resize(std::min(input.size(), kMaxBytes));
    RunOne(target, input);
  }
  if (StepsReached() == steps_before) return;
  std::printf("%s: %llu steps\n", target.name.c_str(),
              static_cast<unsigned long long>(StepsReached() - steps_before));
}

}  // namespace dtrain::fuzz
