#include "net/key_files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/testing/files.h"

namespace dtrain::net {
namespace {

namespace fs = std::filesystem;

void Write(const std::string& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text;
  REQUIRE(chmod(path.c_str(), mode) == 0);
}

// A directory as dtrain keygen makes it.
struct KeyDirectory {
  KeyPair ps = NewKeyPair(), worker = NewKeyPair(), any = NewKeyPair();
  const std::string path = testing::NewDirectory();

  KeyDirectory() {
    WriteSecretFile(path + "/ps-0.key", "ps 0", ps.secret_key);
    WriteSecretFile(path + "/worker-1.key", "worker 1", worker.secret_key);
    WriteSecretFile(path + "/worker.key", "worker", any.secret_key);
    WriteList({{"ps 0", ps.public_key}, {"worker 1", worker.public_key}, {"worker", any.public_key}});
  }
  void WriteList(const std::vector<ListedKey>& listed) {
    std::string text;
    for (const ListedKey& key : listed) text += KeyLine(key);
    Write(path + "/cluster.keys", text, 0644);
  }
  std::string ErrorOf(const std::string& name) const {
    try {
      OpenKeyRing(path, name);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_CASE("key files: a task takes its own secret key; a worker without one takes that of all workers") {
  const KeyDirectory keys;
  CHECK(OpenKeyRing(keys.path, "ps 0")->own().public_key == keys.ps.public_key);
  const auto own = OpenKeyRing(keys.path, "worker 1"), shared = OpenKeyRing(keys.path, "worker 2");
  CHECK(own->own().secret_key == keys.worker.secret_key);
  CHECK(own->secret_name() == "worker-1.key");
  CHECK(shared->own().secret_key == keys.any.secret_key);
  CHECK(shared->secret_name() == "worker.key");
  CHECK(keys.ErrorOf("ps 1") == keys.path +
                                    "/ps-1.key: No such file or directory (2). Run dtrain keygen, and give "
                                    "this machine cluster.keys and the secret key of its task.");
}

TEST_CASE("key files: a secret key of another task is refused, and both are named") {
  const KeyDirectory keys;
  const std::string path = keys.path + "/ps-0.key";
  for (const auto& [file, owner] :
       {std::pair("worker-1.key", "worker 1"), std::pair("worker.key", "worker")}) {
    fs::copy_file(keys.path + "/" + file, path, fs::copy_options::overwrite_existing);
    CHECK(keys.ErrorOf("ps 0") == path + ": it has the key of " + owner + ". Copy the file of ps 0 here.");
  }
}

TEST_CASE(
    "key files: a secret key that other users may read is refused, and so is a list that they may write") {
  const KeyDirectory keys;
  const std::string secret = keys.path + "/ps-0.key";
  for (const mode_t mode : {0644, 0640, 0604, 0620, 0601}) {
    chmod(secret.c_str(), mode);
    CAPTURE(mode);
    CHECK(keys.ErrorOf("ps 0").find("refused. Run: chmod 600 " + secret) != std::string::npos);
  }
  chmod(secret.c_str(), 0400);
  CHECK(keys.ErrorOf("ps 0") == "");
  chmod((keys.path + "/cluster.keys").c_str(), 0664);
  CHECK(keys.ErrorOf("ps 0").find("so other users could add keys; refused. Run: chmod go-w ") !=
        std::string::npos);
}

TEST_CASE(
    "key files: links to a key work, as in a Kubernetes Secret, and what is no regular file is refused") {
  const KeyDirectory keys;
  const std::string secret = keys.path + "/ps-0.key", data = keys.path + "/..data";
  fs::create_directory(data);
  fs::rename(secret, data + "/ps-0.key");
  fs::create_symlink("..data/ps-0.key", secret);
  CHECK(keys.ErrorOf("ps 0") == "");
  chmod((data + "/ps-0.key").c_str(), 0644);
  CHECK(keys.ErrorOf("ps 0").find("its mode is 0644") != std::string::npos);
  fs::remove(secret);
  fs::create_directory(secret);
  CHECK(keys.ErrorOf("ps 0") == secret + ": not a regular file; keys are read from nothing else.");
  fs::remove(secret);
  REQUIRE(mkfifo(secret.c_str(), 0600) == 0);
  CHECK(keys.ErrorOf("ps 0") == secret + ": not a regular file; keys are read from nothing else.");
}

TEST_CASE("key files: a secret key among the public ones is refused, and the error does not show it") {
  const KeyDirectory keys;
  Write(keys.path + "/cluster.keys", KeyLine({"secret", keys.ps.secret_key}), 0644);
  CHECK(keys.ErrorOf("ps 0").find("it has a secret key; must have public keys only") != std::string::npos);
  CHECK(keys.ErrorOf("ps 0").find(keys.ps.secret_key) == std::string::npos);
  Write(keys.path + "/ps-0.key", KeyLine({"ps 0", keys.ps.public_key}), 0600);
  CHECK(keys.ErrorOf("ps 0").find("must have one line, with the secret key") != std::string::npos);
  Write(keys.path + "/ps-0.key", std::string(5000, '#'), 0600);
  CHECK(keys.ErrorOf("ps 0").find("more than 4096 bytes") != std::string::npos);
}

TEST_CASE("key files: the ring takes a changed list, and keeps the old one while the new one is wrong") {
  KeyDirectory keys;
  const auto ring = OpenKeyRing(keys.path, "ps 0");
  std::vector<std::string> log;
  ring->set_log([&](const std::string& line) { log.push_back(line); });
  const auto refresh = [&] { ring->Take(KeyRing::Read(ring->source())); };
  refresh();
  CHECK(log.empty());
  const std::string next = NewKeyPair().public_key;
  keys.WriteList({{"ps 0", keys.ps.public_key}, {"worker 1", next}});
  refresh();
  refresh();
  CHECK(log == std::vector<std::string>{"cluster.keys was read again: it has 2 keys"});
  CHECK(ring->KeysOf("worker 1") == std::vector<std::string>{next});
  keys.WriteList({{"worker 1", next}});
  refresh();
  refresh();
  CHECK(log.size() == 2);
  CHECK(ring->KeysOf("ps 0") == std::vector<std::string>{keys.ps.public_key});
}

TEST_CASE("key files: a ring from a descriptor is whole, and the descriptor is closed") {
  const KeyDirectory keys;
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const std::string text = KeyRingText(keys.ps.secret_key, {{"ps 0", keys.ps.public_key}});
  REQUIRE(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  close(ends[1]);
  const auto ring = ReadKeyRing(ends[0], "ps 0");
  CHECK(ring->own().secret_key == keys.ps.secret_key);
  CHECK(ring->KeysOf("ps 0").size() == 1);
  CHECK(fcntl(ends[0], F_GETFD) == -1);
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  close(ends[1]);
  CHECK_THROWS_WITH_AS(ReadKeyRing(ends[0], "ps 0"),
                       "the keys from the parent of ps 0: there is no secret key.", UserError);
}

TEST_CASE("key files: a new secret key is for its user alone, and never takes the place of a file or link") {
  const std::string dir = testing::NewDirectory(), path = dir + "/worker.key";
  umask(0);
  WriteSecretFile(path, "worker", NewKeyPair().secret_key);
  umask(022);
  struct stat file {};
  REQUIRE(stat(path.c_str(), &file) == 0);
  CHECK((file.st_mode & 07777) == 0600);
  CHECK_THROWS_AS(WriteSecretFile(path, "worker", NewKeyPair().secret_key), UserError);
  fs::create_symlink(dir + "/elsewhere", dir + "/ps-0.key");
  CHECK_THROWS_AS(WriteSecretFile(dir + "/ps-0.key", "ps 0", NewKeyPair().secret_key), UserError);
  CHECK_FALSE(fs::exists(dir + "/elsewhere"));
}

}  // namespace
}  // namespace dtrain::net
