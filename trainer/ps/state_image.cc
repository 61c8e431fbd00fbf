#include "trainer/ps/state_image.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace dtrain {
namespace {

// Changed bytes of a section, which follow it. Without bytes it tells only the section's new size.
struct Run {
  uint32_t section = 0;
  uint32_t size = 0;  // of the section, from now on
  uint32_t first = 0;
  uint32_t bytes = 0;
};

// Bytes between two runs that cost less than another run.
constexpr size_t kGap = 32;
constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kMaxSections = 1 << 16;
constexpr size_t kMaxBytes = size_t{1} << 26;

void Append(const Run& run, const char* bytes, std::string* changes) {
  changes->append(reinterpret_cast<const char*>(&run), sizeof(run));
  changes->append(bytes, run.bytes);
}

}  // namespace

void StateImage::Put(size_t section, std::string_view bytes, std::string* changes) {
  if (section >= sections_.size()) sections_.resize(section + 1);
  std::string& known = sections_[section];
  if (known == bytes) return;
  const size_t both = std::min(known.size(), bytes.size()) / kWord * kWord;
  Run run{static_cast<uint32_t>(section), static_cast<uint32_t>(bytes.size())};
  size_t first = 0, end = 0;  // of a run
  const auto append = [&] {
    if (end == first) return;
    run.first = static_cast<uint32_t>(first);
    run.bytes = static_cast<uint32_t>(end - first);
    Append(run, bytes.data() + first, changes);
  };
  for (size_t at = 0; at < both; at += kWord) {
    if (std::memcmp(known.data() + at, bytes.data() + at, kWord) == 0) continue;
    if (end == first || at - end > kGap) {
      append();
      first = at;
    }
    end = at + kWord;
  }
  append();
  run.first = static_cast<uint32_t>(both);
  run.bytes = static_cast<uint32_t>(bytes.size() - both);
  if (run.bytes > 0 || known.size() != bytes.size()) Append(run, bytes.data() + both, changes);
  known.assign(bytes);
}

bool StateImage::Take(std::string_view changes) {
  while (!changes.empty()) {
    Run run;
    if (changes.size() < sizeof(run)) return false;
    std::memcpy(&run, changes.data(), sizeof(run));
    changes.remove_prefix(sizeof(run));
    const bool fits = run.section < kMaxSections && run.size <= kMaxBytes && run.first <= run.size &&
                      run.bytes <= run.size - run.first && run.bytes <= changes.size();
    if (!fits) return false;
    if (run.section >= sections_.size()) sections_.resize(run.section + 1);
    std::string& section = sections_[run.section];
    section.resize(run.size);
    section.replace(run.first, run.bytes, changes.substr(0, run.bytes));
    changes.remove_prefix(run.bytes);
  }
  return true;
}

std::string StateImage::All() const {
  StateImage empty;
  std::string changes;
  for (size_t section = 0; section < sections_.size(); ++section)
    empty.Put(section, sections_[section], &changes);
  return changes;
}

}  // namespace dtrain
