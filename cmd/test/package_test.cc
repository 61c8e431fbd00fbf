// What scripts/package.sh makes: it is small, the same every time, and runs where there is nothing but glibc.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"
#include "trainer/version.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommit = "0123456789012345678901234567890123456789";
const std::string kName = fmt::format("dtrain-{}", kVersion);

void Do(const std::string& command) {
  CAPTURE(command);
  REQUIRE(std::system(command.c_str()) == 0);
}

// A sanitizer's library is not for other machines, and makes the program several times as large.
bool IsSanitized() {
  if (!Contains(OutputOf("ldd cmd/dtrain"), "san.so")) return false;
  Skip("the program is built with a sanitizer, which is never packaged");
  return true;
}

// The archive, made of the program that Bazel has built.
std::string Package(const std::string& directory) {
  Do(fmt::format("SOURCE_DATE_EPOCH=1700000000 scripts/package.sh --out {} --built . --commit {} >&2",
                 directory, kCommit));
  return fmt::format("{}/{}-linux-x86_64.tar.zst", directory, kName);
}

// Made once, and so is what it is unpacked to.
const std::string& Archive() {
  static const std::string archive = Package(NewDirectory());
  return archive;
}
const std::string& Unpacked() {
  static const std::string folder = [] {
    const std::string directory = NewDirectory();
    Do(fmt::format("tar -C {} --zstd -xf {}", directory, Archive()));
    return directory + "/" + kName;
  }();
  return folder;
}

// Whatever the loader says of the shared libraries of this program: "libzmq.so.5 => PATH (0x...)".
std::vector<std::string> Libraries(const std::string& program) {
  std::istringstream said(OutputOf("ldd " + program));
  std::vector<std::string> paths;
  for (std::string line; std::getline(said, line);) {
    const size_t arrow = line.find("=> ");
    if (arrow == std::string::npos) continue;
    const std::string path = line.substr(arrow + 3, line.find(" (", arrow) - arrow - 3);
    paths.push_back(fs::path(path).lexically_normal().string());
  }
  return paths;
}

bool IsOfGlibc(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  for (const char* each : {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
                           "libresolv.so.2", "libutil.so.1"}) {
    if (name == each) return true;
  }
  return false;
}

// A script that runs its arguments with `root` as the root directory, where /proc is, as everywhere; empty
// where this machine forbids that.
std::string EnterRoot(const std::string& root) {
  const std::string mount = fmt::format("mount --rbind /proc {}/proc", root);
  for (const std::string how : {"unshare --user --map-root-user --mount", "unshare --mount"}) {
    if (std::system(fmt::format("{} sh -c '{} && /usr/sbin/chroot / true'", how, mount).c_str()) != 0)
      continue;
    const std::string script = NewDirectory() + "/enter";
    WriteFile(script,
              fmt::format("#!/bin/sh\nexec {} sh -c '{} && exec /usr/sbin/chroot {} \"$@\"' enter \"$@\"\n",
                          how, mount, root));
    fs::permissions(script, fs::perms::owner_all);
    return script;
  }
  Skip("the kernel forbids a root directory of our own (unshare, mount, chroot)");
  return std::string();
}

// A root with glibc, the unpacked package, and nothing else.
std::string NewRoot() {
  const std::string root = NewDirectory();
  Do(fmt::format("mkdir {0}/tmp {0}/proc && cp -r {1} {0}/dtrain", root, Unpacked()));
  Do("cp -L --parents /lib64/ld-linux-x86-64.so.2 " + root);
  for (const std::string& path : Libraries("cmd/dtrain")) {
    if (IsOfGlibc(path)) Do(fmt::format("cp -L --parents {} {}", path, root));
  }
  return root;
}

TEST_CASE("package: the program without its libraries is smaller than 7 MiB") {
  if (IsSanitized()) return;
  const std::string stripped = NewDirectory() + "/dtrain";
  Do(fmt::format("strip -o {} cmd/dtrain", stripped));
  CHECK(fs::file_size(stripped) < 7 * 1024 * 1024);
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// Bazel's own flags and those of .bazelrc, as they show in the ELF file.
TEST_CASE("package: the program is hardened") {
  if (IsSanitized()) return;
  const std::string elf =
      OutputOf("readelf -W --file-header --program-headers --dynamic --dyn-syms cmd/dtrain");
  const auto has = [&](const char* pattern) { return std::regex_search(elf, std::regex(pattern)); };
  CHECK(has("Type: +DYN "));                    // its addresses are random
  CHECK(has("FLAGS_1\\) +Flags: .*NOW.*PIE"));  // the same, and all symbols are bound at its start ...
  CHECK(has("GNU_RELRO .* RW? "));              // ... and read-only from then on
  CHECK(has("GNU_STACK .* RW +0x"));            // no code on the stack
  CHECK_FALSE(has(" (RWE|W E) +0x"));           // nor in other memory that can be written
  CHECK(has(" __stack_chk_fail@"));             // -fstack-protector-strong
  CHECK(has(" __(memset|read|recv|snprintf|vsnprintf)_chk@"));  // -D_FORTIFY_SOURCE=3
  const std::string code = NewDirectory() + "/text";
  Do(fmt::format("objcopy -O binary --only-section=.text cmd/dtrain {}", code));
  const std::string text = FileContent(code);
  const std::string probe("\x48\x83\x0c\x24\0", 5);  // orq $0,(%rsp)
  CHECK(Count(text, "\xf3\x0f\x1e\xfa") > 1000);     // endbr64: -fcf-protection
  CHECK(Count(text, probe) > 10);                    // -fstack-clash-protection
}

TEST_CASE("package: shellcheck finds nothing in the script") {
  if (std::system("command -v shellcheck >/dev/null") != 0) {
    Skip("shellcheck is not installed (scripts/install.sh --tests)");
    return;
  }
  Do("shellcheck scripts/package.sh");
}

TEST_CASE("package: the same program and commit give the same bytes, whoever packs and when") {
  if (IsSanitized()) return;
  const mode_t before = umask(0077);
  const std::string again = Package(NewDirectory());
  umask(before);
  CHECK(FileContent(again) == FileContent(Archive()));
}

TEST_CASE("package: it has all that is promised, and the terms of each library") {
  if (IsSanitized()) return;
  for (const char* file :
       {"bin/dtrain", "README.md", "docs/config.md", "docs/tutorial.md", "configs/quickstart_digits.yaml",
        "configs/data/flowers.csv", "share/man/man1/dtrain.1", "share/bash-completion/completions/dtrain",
        "share/fish/vendor_completions.d/dtrain.fish", "share/zsh/site-functions/_dtrain",
        "licenses/libzmq5/copyright", "licenses/libopenblas0-pthread/copyright",
        "licenses/libstdc++6/copyright", "licenses/nlohmann-json3-dev/copyright"}) {
    CAPTURE(file);
    CHECK(fs::is_regular_file(Unpacked() + "/" + file));
  }
  const bool with_cuda = Contains(OutputOf(Unpacked() + "/bin/dtrain --version"), "with CUDA");
  CHECK(fs::is_regular_file(Unpacked() + "/licenses/cuda-runtime/EULA.txt") == with_cuda);
}

TEST_CASE("package: it trains in a root that has nothing but glibc") {
  if (IsSanitized()) return;
  const std::string root = NewRoot(), enter = EnterRoot(root);
  if (enter.empty()) return;
  const std::string version = OutputOf(enter + " /dtrain/bin/dtrain --version");
  CHECK(Contains(version, fmt::format("dtrain {}\ncommit {}\n", kVersion, kCommit)));
  for (const char* config : {"first_cluster.yaml", "flowers.yaml"}) {
    Process run({"-c", fmt::format("exec {} /dtrain/bin/dtrain local --config /dtrain/configs/{} --result "
                                   "/tmp/result.json",
                                   enter, config)},
                Program{"/bin/sh", {}});
    CheckEnd(run);
    CHECK(ReadResult(root + "/tmp/result.json").at("status") == "done");
  }
}

TEST_CASE("package: bin and lib alone run from any other place, with these libraries and no others") {
  if (IsSanitized()) return;
  const std::string elsewhere = NewDirectory() + "/a b";
  Do(fmt::format("mkdir '{0}' && cp -r {1}/bin {1}/lib '{0}'", elsewhere, Unpacked()));
  const std::string program = fmt::format("'{}/bin/dtrain'", elsewhere);
  CHECK(Contains(OutputOf(program + " --version"), kCommit));
  for (const std::string& path : Libraries(program)) {
    CAPTURE(path);
    CHECK((IsOfGlibc(path) || path.compare(0, elsewhere.size(), elsewhere) == 0));
  }
}

}  // namespace
}  // namespace dtrain::testing
