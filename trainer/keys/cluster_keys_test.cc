#include "trainer/keys/cluster_keys.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/testing/files.h"
#include "net/key_files.h"
#include "trainer/config/cluster_config.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

ClusterConfig Cluster(int workers) {
  ClusterConfig cluster;
  cluster.ps = {"10.0.0.1:9001"};
  for (int i = 0; i < workers; ++i) cluster.worker.push_back("10.0.0.2:0");
  return cluster;
}

std::map<std::string, std::string> FilesIn(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    files[entry.path().filename().string()] = testing::FileContent(entry.path().string());
  }
  return files;
}

mode_t ModeOf(const std::string& path) {
  struct stat file {};
  REQUIRE(stat(path.c_str(), &file) == 0);
  return file.st_mode & 07777;
}

TEST_CASE("key directory: each task, any other worker and status get keys that tasks can open") {
  const std::string path = testing::NewDirectory() + "/keys";
  CHECK(KeyDirectory(path, Cluster(2)).AddMissing() == 5);
  CHECK(ModeOf(path) == 0700);
  for (const char* name : {"ps 0", "worker 0", "worker 1", "worker 7", "status"}) {
    CAPTURE(name);
    const auto ring = net::OpenKeyRing(path, name);
    CHECK(ModeOf(path + "/" + ring->secret_name()) == 0600);
    const std::string listed = name == std::string("worker 7") ? "worker" : name;
    CHECK(ring->KeysOf(listed) == std::vector<std::string>{ring->own().public_key});
  }
  CHECK(FilesIn(path).size() == 6);
}

TEST_CASE("key directory: what is there stays, and a larger cluster gets what it needs besides") {
  const std::string path = testing::NewDirectory() + "/keys";
  KeyDirectory(path, Cluster(2)).AddMissing();
  const auto before = FilesIn(path);
  CHECK(KeyDirectory(path, Cluster(2)).AddMissing() == 0);
  CHECK(FilesIn(path) == before);
  fs::remove(path + "/ps-0.key");  // it has gone to its machine
  CHECK(KeyDirectory(path, Cluster(3)).AddMissing() == 1);
  auto after = FilesIn(path);
  CHECK(after.count("ps-0.key") == 0);
  CHECK(after.at("worker-1.key") == before.at("worker-1.key"));
  CHECK(after.count("worker-2.key") == 1);
  CHECK(after.at("cluster.keys").find(before.at("cluster.keys")) == 0);
}

TEST_CASE("key directory: a secret key that a call before has made and not listed is listed") {
  const std::string path = testing::NewDirectory();
  const net::KeyPair pair = net::NewKeyPair();
  net::WriteSecretFile(path + "/ps-0.key", "ps 0", pair.secret_key);
  KeyDirectory(path, Cluster(1)).AddMissing();
  CHECK(net::OpenKeyRing(path, "ps 0")->own().public_key == pair.public_key);
}

TEST_CASE("key directory: a secret key that another user could have put there is not listed") {
  const std::string path = testing::NewDirectory(), secret = path + "/ps-0.key";
  net::WriteSecretFile(secret, "ps 0", net::NewKeyPair().secret_key);
  fs::permissions(secret, fs::perms::others_read, fs::perm_options::add);
  CHECK_THROWS_AS(KeyDirectory(path, Cluster(1)).AddMissing(), UserError);
  CHECK_FALSE(fs::exists(path + "/cluster.keys"));
  fs::permissions(secret, fs::perms::others_read, fs::perm_options::remove);
  CHECK(KeyDirectory(path, Cluster(1)).AddMissing() > 0);
}

TEST_CASE(
    "key directory: a key that is replaced is listed beside the new one; without an old one it is refused") {
  const std::string path = testing::NewDirectory();
  const KeyDirectory keys(path, Cluster(2));
  keys.AddMissing();
  const std::string old_key = net::OpenKeyRing(path, "worker 1")->own().public_key;
  CHECK(keys.Replace("worker 1") == std::vector<std::string>{"worker 1 " + old_key + "\n"});
  const auto ring = net::OpenKeyRing(path, "worker 1");
  CHECK(ring->own().public_key != old_key);
  CHECK(ring->KeysOf("worker 1") == std::vector<std::string>{old_key, ring->own().public_key});
  CHECK(FilesIn(path).size() == 6);
  CHECK_THROWS_AS(keys.Replace("worker 2"), UserError);
}

TEST_CASE("key directory: the check names the keys that are here, and what is wrong with them") {
  const std::string path = testing::NewDirectory();
  const KeyDirectory keys(path, Cluster(1));
  CHECK_THROWS_WITH_AS(keys.Check(),
                       (path + "/cluster.keys: there is no key of ps 0. Run dtrain keygen again.").c_str(),
                       UserError);
  keys.AddMissing();
  CHECK(keys.Check() == keys.names());
  for (const char* gone : {"worker-0.key", "worker.key", "status.key"}) fs::remove(path + "/" + gone);
  CHECK(keys.Check() == std::vector<std::string>{"ps 0"});
  fs::permissions(path + "/ps-0.key", fs::perms::group_read, fs::perm_options::add);
  CHECK_THROWS_AS(keys.Check(), UserError);
}

TEST_CASE("key directory: one into which other users may write is refused") {
  const std::string path = testing::NewDirectory();
  fs::permissions(path, fs::perms::all);
  CHECK_THROWS_AS(KeyDirectory(path, Cluster(1)).AddMissing(), UserError);
  CHECK(fs::is_empty(path));
}

}  // namespace
}  // namespace dtrain
