#include "net/key_files.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace dtrain::net {
namespace {

constexpr size_t kMaxListBytes = size_t{4} << 20;
constexpr size_t kMaxSecretBytes = 4096;

std::string Joined(const std::string& directory, const std::string& name) { return directory + "/" + name; }

std::string ReadAll(int fd, const std::string& path, size_t max_bytes) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw UserError("{}: cannot read: {}.", path, ErrnoText(errno));
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > max_bytes) {
      throw UserError("{}: more than {} bytes; it is no file of dtrain keygen.", path, max_bytes);
    }
  }
}

// A key file may be a link, as in a Kubernetes Secret: what counts is the file that it leads to. So the
// descriptor is looked at, not the path.
struct stat CheckKeyFile(int fd, const std::string& path) {
  struct stat file {};
  if (fstat(fd, &file) != 0) throw UserError("{}: {}.", path, ErrnoText(errno));
  if (!S_ISREG(file.st_mode))
    throw UserError("{}: not a regular file; keys are read from nothing else.", path);
  if (file.st_uid != 0 && file.st_uid != geteuid()) {
    throw UserError(
        "{}: it belongs to user {}, who could change it; must be of root or of user {}, who runs "
        "this task.",
        path, file.st_uid, geteuid());
  }
  return file;
}

// A file of root is here for this task alone if a group may read it: systemd's credentials and the Secrets of
// Kubernetes with fsGroup look so to a task that does not run as root.
void CheckSecret(const struct stat& file, const std::string& path) {
  const bool handed_over = file.st_uid == 0 && geteuid() != 0;
  if ((file.st_mode & (handed_over ? 037 : 077)) == 0) return;
  throw UserError(
      "{}: its mode is {:04o}, so other users may have the secret key; refused. Run: chmod 600 {}", path,
      file.st_mode & 07777, path);
}

void CheckList(const struct stat& file, const std::string& path) {
  if ((file.st_mode & 022) == 0) return;
  throw UserError("{}: its mode is {:04o}, so other users could add keys; refused. Run: chmod go-w {}", path,
                  file.st_mode & 07777, path);
}

int OpenToRead(const std::string& path) { return open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); }

[[noreturn]] void ThrowMissing(const std::string& path, int error) {
  throw UserError("{}: {}. Run dtrain keygen, and give this machine {} and the secret key of its task.", path,
                  ErrnoText(error), kKeyListName);
}

std::vector<ListedKey> ListIn(const std::string& text, const std::string& source) {
  KeyText keys = ParseKeyText(text, source);
  if (!keys.secret_key.empty()) {
    throw UserError(
        "{}: it has a secret key; must have public keys only. Make new keys with dtrain keygen: "
        "this one may be known.",
        source);
  }
  return std::move(keys.listed);
}

std::string SecretIn(const std::string& text, const std::string& source) {
  const KeyText keys = ParseKeyText(text, source);
  if (keys.secret_key.empty() || !keys.listed.empty()) {
    throw UserError("{}: must have one line, with the secret key. Run dtrain keygen.", source);
  }
  return keys.secret_key;
}

// `key` is listed.
std::string OwnerOf(const std::string& key, const std::vector<ListedKey>& listed) {
  const auto is_this = [&](const ListedKey& each) { return each.key == key; };
  return std::find_if(listed.begin(), listed.end(), is_this)->name;
}

std::string SecretOf(const FileDescriptor& file, const std::string& path) {
  if (file.get() < 0) ThrowMissing(path, errno);
  CheckSecret(CheckKeyFile(file.get(), path), path);
  return SecretIn(ReadAll(file.get(), path, kMaxSecretBytes), path);
}

// ListFile: cluster.keys, and what it was when it was last read.
class ListFile {
 public:
  explicit ListFile(std::string path) : path_(std::move(path)) {}

  // Returns null if the file is as it was.
  std::unique_ptr<std::vector<ListedKey>> ReadIfChanged() {
    const FileDescriptor list(OpenToRead(path_));
    if (list.get() < 0) ThrowMissing(path_, errno);
    const struct stat file = CheckKeyFile(list.get(), path_);
    const Stamp stamp{file.st_ino, file.st_size, file.st_ctim.tv_sec, file.st_ctim.tv_nsec};
    if (stamp == last_) return nullptr;
    CheckList(file, path_);
    auto listed =
        std::make_unique<std::vector<ListedKey>>(ListIn(ReadAll(list.get(), path_, kMaxListBytes), path_));
    last_ = stamp;  // not before: a disk that fails now may be read later
    return listed;
  }

 private:
  using Stamp = std::tuple<ino_t, off_t, time_t, long>;

  const std::string path_;
  Stamp last_;
};

}  // namespace

std::string SecretFileName(std::string_view name) {
  std::string file(name);
  for (char& c : file) {
    if (c == ' ') c = '-';
  }
  return file + ".key";
}

std::vector<ListedKey> ReadKeyList(const std::string& directory) {
  const std::string path = Joined(directory, kKeyListName);
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return {};
  return *ListFile(path).ReadIfChanged();
}

std::shared_ptr<KeyRing> OpenKeyRing(const std::string& directory, const std::string& name) {
  const std::string role = name.substr(0, name.find(' '));
  std::string secret_name = SecretFileName(name);
  std::string path = Joined(directory, secret_name);
  int fd = OpenToRead(path);
  if (fd < 0 && errno == ENOENT && role == "worker") {
    secret_name = SecretFileName(role);
    fd = OpenToRead(Joined(directory, secret_name));
    if (fd >= 0) path = Joined(directory, secret_name);
  }
  const std::string secret_key = SecretOf(FileDescriptor(fd), path);
  ListFile list(Joined(directory, kKeyListName));
  const auto listed = list.ReadIfChanged();
  auto ring = std::make_shared<KeyRing>(secret_key, secret_name, *listed);
  const std::string owner = OwnerOf(ring->own().public_key, *listed);
  if (owner != name && (role != "worker" || owner != role)) {
    throw UserError("{}: it has the key of {}. Copy the file of {} here.", path, owner, name);
  }
  ring->set_source([list = std::move(list)]() mutable { return list.ReadIfChanged(); });
  return ring;
}

std::shared_ptr<KeyRing> ReadKeyRing(int fd, const std::string& name) {
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  lseek(fd, 0, SEEK_SET);  // an earlier process of this task may have read it; a pipe has no beginning
  const FileDescriptor keys(fd);
  const std::string source = "the keys from the parent of " + name;
  const KeyText text = ParseKeyText(ReadAll(keys.get(), source, kMaxListBytes), source);
  if (text.secret_key.empty()) throw UserError("{}: there is no secret key.", source);
  return std::make_shared<KeyRing>(text.secret_key, "its key", text.listed);
}

std::string KeyRingText(const std::string& secret_key, const std::vector<ListedKey>& listed) {
  std::string text = KeyLine({"secret", secret_key});
  for (const ListedKey& key : listed) text += KeyLine(key);
  return text;
}

std::string ReadSecretFile(const std::string& path) {
  return SecretOf(FileDescriptor(OpenToRead(path)), path);
}

void WriteSecretFile(const std::string& path, const std::string& name, const std::string& secret_key) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) ThrowUnwritable(UnwritableText(path, errno), errno);
  const std::string text = fmt::format("# The secret key of {}: for its machine alone.\n{}", name,
                                       KeyLine({"secret", secret_key}));
  int failed = fchmod(file.get(), 0600) == 0 ? WriteAll(file.get(), text) : errno;
  if (failed == 0 && fsync(file.get()) != 0) failed = errno;
  if (failed == 0) return;
  unlink(path.c_str());
  throw FileError(UnwritableText(path, failed), failed);
}

}  // namespace dtrain::net
