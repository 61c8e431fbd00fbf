// What scripts/package.sh makes: it is small, the same every time, and runs where there is nothing but glibc.
// And the data that scripts/fetch_mnist.sh fetches.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
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

// The packages of the program that Bazel has built: archive, Debian package, wheel.
struct Packages {
  std::string archive, debian, wheel;
};

Packages Package() {
  const std::string directory = NewDirectory();
  const std::string made = OutputOf(fmt::format(
      "SOURCE_DATE_EPOCH=1700000000 scripts/package.sh --out {} --built . --commit {}", directory, kCommit));
  std::istringstream lines(made);
  Packages packages;
  lines >> packages.archive >> packages.debian >> packages.wheel;
  CAPTURE(made);
  REQUIRE(fs::is_regular_file(packages.wheel));
  return packages;
}

// Made once, and so is what the archive is unpacked to.
const Packages& Made() {
  static const Packages packages = Package();
  return packages;
}
const std::string& Unpacked() {
  static const std::string folder = [] {
    const std::string directory = NewDirectory();
    Do(fmt::format("tar -C {} --zstd -xf {}", directory, Made().archive));
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

// A library of glibc, or libgcc_s, on which the glibc package of every distribution depends.
bool IsOfSystem(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  for (const char* each : {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
                           "libresolv.so.2", "libutil.so.1", "libgcc_s.so.1"}) {
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

// A root with glibc and nothing else.
std::string NewRoot() {
  const std::string root = NewDirectory();
  Do(fmt::format("mkdir {0}/tmp {0}/proc", root));
  Do("cp -L --parents /lib64/ld-linux-x86-64.so.2 " + root);
  for (const std::string& path : Libraries("cmd/dtrain")) {
    if (IsOfSystem(path)) Do(fmt::format("cp -L --parents {} {}", path, root));
  }
  return root;
}

TEST_CASE("package: the program without its libraries is smaller than 7.5 MiB") {
  if (IsSanitized()) return;
  const std::string stripped = NewDirectory() + "/dtrain";
  Do(fmt::format("strip -o {} cmd/dtrain", stripped));
  CHECK(fs::file_size(stripped) < 7.5 * 1024 * 1024);
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

TEST_CASE("package: shellcheck finds nothing in the scripts") {
  if (std::system("command -v shellcheck >/dev/null") != 0) {
    Skip("shellcheck is not installed (scripts/install.sh --tests)");
    return;
  }
  Do("shellcheck scripts/package.sh scripts/fetch_mnist.sh");
}

TEST_CASE("package: the same program and commit give the same bytes, whoever packs and when") {
  if (IsSanitized()) return;
  const mode_t before = umask(0077);
  const Packages again = Package();
  umask(before);
  CHECK(FileContent(again.archive) == FileContent(Made().archive));
  CHECK(FileContent(again.debian) == FileContent(Made().debian));
  CHECK(FileContent(again.wheel) == FileContent(Made().wheel));
}

TEST_CASE("package: it has all that is promised, and the terms of each library") {
  if (IsSanitized()) return;
  for (const char* file : {"bin/dtrain", "README.md", "README.zh.md", "CHANGELOG.md", "docs/config.md",
                           "docs/row_by_hand.py", "docs/tutorial.zh.md", "configs/quickstart_digits.yaml",
                           "configs/data/flowers.csv", "deploy/Dockerfile", "scripts/fetch_mnist.sh",
                           "share/man/man1/dtrain.1", "share/bash-completion/completions/dtrain",
                           "share/fish/vendor_completions.d/dtrain.fish", "share/zsh/site-functions/_dtrain",
                           "licenses/libzmq5/copyright", "licenses/libopenblas0-pthread/copyright",
                           "licenses/libstdc++6/copyright", "licenses/nlohmann-json3-dev/copyright"}) {
    CAPTURE(file);
    CHECK(fs::is_regular_file(Unpacked() + "/" + file));
  }
  const bool with_cuda = Contains(OutputOf(Unpacked() + "/bin/dtrain --version"), "with CUDA");
  CHECK(fs::is_regular_file(Unpacked() + "/licenses/cuda-runtime/EULA.txt") == with_cuda);
}

// Has `program`, a path in `root`, train there.
void TrainIn(const std::string& root, const std::string& program, const std::string& configs) {
  const std::string enter = EnterRoot(root);
  if (enter.empty()) return;
  const std::string version = OutputOf(enter + " " + program + " --version");
  CHECK(Contains(version, fmt::format("dtrain {}\ncommit {}\n", kVersion, kCommit)));
  for (const char* config : {"first_cluster.yaml", "flowers.yaml"}) {
    Process run({"-c", fmt::format("exec {} {} local {}/{} --run none --result /tmp/result.json", enter,
                                   program, configs, config)},
                Program{"/bin/sh", {}});
    CheckEnd(run);
    CHECK(ReadResult(root + "/tmp/result.json").at("status") == "done");
  }
}

TEST_CASE("package: the archive trains in a root that has nothing but glibc") {
  if (IsSanitized()) return;
  const std::string root = NewRoot();
  Do(fmt::format("cp -r {} {}/dtrain", Unpacked(), root));
  TrainIn(root, "/dtrain/bin/dtrain", "/dtrain/configs");
}

TEST_CASE("package: the Debian package trains in a root that has nothing but glibc") {
  if (IsSanitized()) return;
  const std::string root = NewRoot();
  Do(fmt::format("dpkg-deb -x {} {}", Made().debian, root));
  TrainIn(root, "/usr/bin/dtrain", "/usr/share/doc/dtrain/configs");
  CHECK(fs::is_regular_file(root + "/usr/share/man/man1/dtrain.1.gz"));
  const std::string control = OutputOf("dpkg-deb -f " + Made().debian);
  CHECK(Contains(control, fmt::format("Package: dtrain\nVersion: {}\nArchitecture: amd64\n", kVersion)));
}

TEST_CASE("package: pip installs the wheel, the program trains through a link, and pip removes it all") {
  if (IsSanitized()) return;
  const std::string venv = NewDirectory() + "/a b",
                    found = fmt::format(
                        "find '{}' -type f '(' -name '*dtrain*' -o -path '*/lib/dtrain/*' ')'", venv);
  Do(fmt::format("python3 -m venv '{}'", venv));
  const std::string pip = fmt::format("'{}/bin/pip' --quiet --disable-pip-version-check ", venv);
  Do(pip + "install --no-index " + Made().wheel);
  const std::string link = NewDirectory() + "/dtrain";
  fs::create_symlink(venv + "/bin/dtrain", link);
  CHECK(Contains(OutputOf(link + " --version"), kCommit));
  Process run({"local", "configs/flowers.yaml"}, Program{link, {}});
  CheckEnd(run);
  Do(pip + "uninstall --yes dtrain");
  CHECK(OutputOf(found) == "");
}

// "GLIBC_2.34", the highest one that the file needs.
std::string NeededGlibc(const std::string& file) {
  return OutputOf("objdump -T '" + file + "' | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | tr -d '\\n'");
}

TEST_CASE("package: no file needs a later glibc than pages, Debian package and wheel say") {
  if (IsSanitized()) return;
  std::string highest = "GLIBC_2.0";
  for (const char* part : {"bin", "lib"}) {
    for (const auto& entry : fs::directory_iterator(Unpacked() + "/" + part)) {
      const std::string needed = NeededGlibc(entry.path().string());
      fmt::print("{} needs {}\n", entry.path().filename().string(), needed);
      if (strverscmp(needed.c_str(), highest.c_str()) > 0) highest = needed;
    }
  }
  const std::string version = highest.substr(6),
                    tag = "_" + std::regex_replace(version, std::regex("\\."), "_");
  CHECK(version == "2.34");
  CHECK(Contains(FileContent("README.md"), fmt::format("glibc {} or later", version)));
  CHECK(Contains(FileContent("docs/packages.md"), fmt::format("glibc {} or later", version)));
  CHECK(
      Contains(OutputOf("dpkg-deb -f " + Made().debian + " Depends"), fmt::format("libc6 (>= {})", version)));
  CHECK(Contains(Made().wheel, "-py3-none-manylinux" + tag + "_x86_64.whl"));
}

// The libstdc++ of the package is linked by scripts/package.sh.
TEST_CASE("package: every symbol that its libraries need is there") {
  if (IsSanitized()) return;
  const std::string program = Unpacked() + "/bin/dtrain";
  CHECK(Contains(OutputOf("LD_BIND_NOW=1 " + program + " --version"), kCommit));
  CHECK(OutputOf("ldd -r " + program + " | grep -E 'undefined|not found'") == "");
}

TEST_CASE("package: bin and lib alone run from any other place, with these libraries and no others") {
  if (IsSanitized()) return;
  const std::string elsewhere = NewDirectory() + "/a b";
  Do(fmt::format("mkdir '{0}' && cp -r {1}/bin {1}/lib '{0}'", elsewhere, Unpacked()));
  const std::string program = fmt::format("'{}/bin/dtrain'", elsewhere);
  CHECK(Contains(OutputOf(program + " --version"), kCommit));
  for (const std::string& path : Libraries(program)) {
    CAPTURE(path);
    CHECK((IsOfSystem(path) || path.compare(0, elsewhere.size(), elsewhere) == 0));
  }
}

// A web server of `directory`; prints a line with its port.
constexpr const char* kServer =
    "import functools, http.server as h, sys\n"
    "handler = functools.partial(h.SimpleHTTPRequestHandler, directory=sys.argv[1])\n"
    "server = h.ThreadingHTTPServer(('127.0.0.1', 0), handler)\n"
    "print('port', server.server_port, '.', file=sys.stderr, flush=True)\n"
    "server.serve_forever()\n";

TEST_CASE("fetch_mnist: fetches what is missing from a mirror, and refuses what is not MNIST") {
  const char* const data = std::getenv("DTRAIN_SHARED_DATA");
  if (data == nullptr || !fs::is_directory(std::string(data) + "/mnist")) {
    Skip("the files of MNIST are not there (DTRAIN_SHARED_DATA)");
    return;
  }
  const std::string mirror = NewDirectory(), sets = NewDirectory(), images = "/train-images-idx3-ubyte.gz";
  fs::copy(std::string(data) + "/mnist", mirror);
  Process server({"-c", kServer, mirror}, Program{"/usr/bin/python3", {}});
  REQUIRE(server.WaitForLine(" ."));
  const std::string port = server.standard_error().substr(5, server.standard_error().find(" .") - 5);
  const std::string fetch =
      fmt::format("DTRAIN_DATA={} MNIST_MIRROR=http://127.0.0.1:{} scripts/fetch_mnist.sh 2>&1", sets, port);

  const std::string said = OutputOf(fetch), again = OutputOf(fetch);
  CHECK(Count(said, "ubyte.gz\n") == 4);
  CHECK(Count(again, "ubyte.gz is there\n") == 4);
  CHECK(FileContent(sets + "/mnist" + images) == FileContent(mirror + images));
  Process run({"local", "configs/mnist_softmax_sync.yaml", "--set", "train.steps=10"},
              Program{"cmd/dtrain", {"DTRAIN_DATA=" + sets}});
  CheckEnd(run);

  fs::remove(sets + "/mnist" + images);
  WriteFile(mirror + images, "<html>not here</html>");
  CHECK(Contains(OutputOf(fetch + " || true"), "is not MNIST's train-images-idx3-ubyte: a broken download"));
  fs::remove(mirror + images);
  CHECK(Contains(OutputOf(fetch + " || true"), "cannot be fetched. Set MNIST_MIRROR"));
  CHECK(OutputOf("ls " + sets + "/mnist | wc -l") == "3\n");  // and no part of a file
}

}  // namespace
}  // namespace dtrain::testing
