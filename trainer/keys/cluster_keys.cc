#include "trainer/keys/cluster_keys.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "net/key_files.h"
#include "net/keys.h"
#include "trainer/config/cluster_config.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr char kHead[] =
    "# The public keys of a cluster, by task. Each machine has this file; none of it is secret.\n"
    "# A task may have two keys while one is being changed: docs/security.md.\n";

void MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return;
  const int failed = errno;
  struct stat directory {};
  if (failed != EEXIST || stat(path.c_str(), &directory) != 0 || !S_ISDIR(directory.st_mode)) {
    ThrowUnwritable(
        fmt::format("{}: cannot make this directory of keys: {}. Choose another.", path, ErrnoText(failed)),
        failed);
  }
  if (directory.st_uid != 0 && directory.st_uid != geteuid()) {
    throw UserError(
        "{}: it belongs to user {}, who could replace keys; must be of root or of user {}, who runs this.",
        path, directory.st_uid, geteuid());
  }
  if ((directory.st_mode & 022) == 0) return;
  throw UserError("{}: its mode is {:04o}, so other users could replace keys; refused. Run: chmod go-w {}",
                  path, directory.st_mode & 07777, path);
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

bool IsListed(const std::vector<net::ListedKey>& listed, const std::string& name) {
  return std::any_of(listed.begin(), listed.end(),
                     [&](const net::ListedKey& each) { return each.name == name; });
}

// Adds lines to the list; those that are there stay as they are, with their comments.
void AddToList(const std::string& path, const std::vector<net::ListedKey>& added) {
  std::string text = TextOf(path);
  if (text.empty()) text = kHead;
  if (text.back() != '\n') text += '\n';
  for (const net::ListedKey& key : added) text += net::KeyLine(key);
  WriteFileAtomically(path, text);
}

// A secret key is on the disk before its public key is listed: one that is not listed yet is taken up.
std::string PublicKeyFor(const std::string& path, const std::string& name) {
  std::error_code unknown;
  if (fs::exists(fs::symlink_status(path, unknown))) {
    return net::PublicKeyOf(net::ReadSecretFile(path));
  }
  const net::KeyPair pair = net::NewKeyPair();
  net::WriteSecretFile(path, name, pair.secret_key);
  return pair.public_key;
}

}  // namespace

KeyDirectory::KeyDirectory(std::string path, const ClusterConfig& cluster) : path_(std::move(path)) {
  for (size_t i = 0; i < cluster.ps.size(); ++i) names_.push_back(TaskName({Role::kPs, static_cast<int>(i)}));
  for (size_t i = 0; i < cluster.worker.size(); ++i) {
    names_.push_back(TaskName({Role::kWorker, static_cast<int>(i)}));
  }
  names_.insert(names_.end(), {"worker", "status"});
}

std::string KeyDirectory::ListPath() const { return path_ + "/" + net::kKeyListName; }

std::string KeyDirectory::SecretPath(const std::string& name) const {
  return path_ + "/" + net::SecretFileName(name);
}

std::vector<std::string> KeyDirectory::Check() const {
  const std::vector<net::ListedKey> listed = net::ReadKeyList(path_);
  std::vector<std::string> here;
  for (const std::string& name : names_) {
    const bool is_task = name != "worker" && name != "status";
    const bool any_worker = name.find("worker ") == 0 && IsListed(listed, "worker");
    if (is_task && !any_worker && !IsListed(listed, name)) {
      throw UserError("{}: there is no key of {}. Run dtrain keygen again.", ListPath(), name);
    }
    if (!fs::exists(SecretPath(name))) continue;
    net::OpenKeyRing(path_, name);
    here.push_back(name);
  }
  return here;
}

size_t KeyDirectory::AddMissing() const {
  MakeDirectory(path_);
  const std::vector<net::ListedKey> listed = net::ReadKeyList(path_);
  std::vector<net::ListedKey> added;
  for (const std::string& name : names_) {
    if (!IsListed(listed, name)) added.push_back({name, PublicKeyFor(SecretPath(name), name)});
  }
  if (!added.empty()) AddToList(ListPath(), added);
  return added.size();
}

std::vector<std::string> KeyDirectory::Replace(const std::string& name) const {
  const std::vector<net::ListedKey> listed = net::ReadKeyList(path_);
  if (!IsListed(listed, name)) {
    throw UserError("{}: there is no key of {} to replace. The names are {}.", ListPath(), name,
                    fmt::join(names_, ", "));
  }
  const net::KeyPair pair = net::NewKeyPair();
  const std::string path = SecretPath(name), next = path + ".new";
  unlink(next.c_str());  // of a call that was interrupted
  net::WriteSecretFile(next, name, pair.secret_key);
  AddToList(ListPath(), {{name, pair.public_key}});
  fs::rename(next, path);
  std::vector<std::string> old_lines;
  for (const net::ListedKey& each : listed) {
    if (each.name == name) old_lines.push_back(net::KeyLine(each));
  }
  return old_lines;
}

}  // namespace dtrain
