#include "net/keys.h"

#include <doctest/doctest.h>
#include <zmq.h>

#include <future>

#include "base/error.h"

namespace dtrain::net {
namespace {

std::string Raw(const std::string& key) {
  uint8_t bytes[32];
  REQUIRE(zmq_z85_decode(bytes, key.c_str()) != nullptr);
  return std::string(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

std::string ErrorOf(const std::string& text) {
  try {
    ParseKeyText(text, "a/cluster.keys");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("keys: a new pair is another each time, and the public key follows from the secret one") {
  const KeyPair one = NewKeyPair(), other = NewKeyPair();
  CHECK(one.public_key.size() == 40);
  CHECK(one.secret_key != other.secret_key);
  CHECK(PublicKeyOf(one.secret_key) == one.public_key);
}

TEST_CASE(
    "keys: the text of keys is read as it was written, with comments, blanks and line ends of any kind") {
  const std::string a = NewKeyPair().public_key, b = NewKeyPair().public_key, c = NewKeyPair().public_key;
  const KeyText keys = ParseKeyText(
      "# of my cluster\n\n" + KeyLine({"ps 0", a}) + "  worker\t12 " + b + "\r\nsecret " + c, "x");
  CHECK(keys.listed == std::vector<ListedKey>{{"ps 0", a}, {"worker 12", b}});
  CHECK(keys.secret_key == c);
  CHECK(ParseKeyText("worker " + a + "\nstatus " + b, "x").listed ==
        std::vector<ListedKey>{{"worker", a}, {"status", b}});
}

TEST_CASE("keys: a line that is none is refused with its place, and no error shows a key") {
  const std::string key = NewKeyPair().secret_key;
  for (const char* name :
       {"", "ps", "chief 0", "ps -1", "ps 01", "ps 1 2", "worker x", "status 0", "worker 1234567890"}) {
    CAPTURE(name);
    const std::string error = ErrorOf("# one\n" + std::string(name) + " " + key);
    CHECK(error.find("a/cluster.keys:2: ") == 0);
    CHECK(error.find(key) == std::string::npos);
  }
  const std::string short_key = key.substr(1);
  CHECK(ErrorOf("secret " + short_key) ==
        "a/cluster.keys:1: the key has 39 characters; must be 40 of Z85. Run dtrain keygen again.");
  CHECK(ErrorOf("ps 0 " + short_key + "~").find("40 of Z85") != std::string::npos);
  CHECK(ErrorOf("ps 0 " + short_key + "\xe4").find("40 of Z85") != std::string::npos);
  CHECK(ErrorOf("secret " + key + "\nsecret " + key).find("a/cluster.keys:2: a second") == 0);
}

TEST_CASE("key ring: a listed key has a number, and only the tasks that it is listed for") {
  const KeyPair own = NewKeyPair();
  const std::string ps = NewKeyPair().public_key, any = NewKeyPair().public_key,
                    status = NewKeyPair().public_key;
  const KeyRing ring(own.secret_key, "worker-1.key",
                     {{"ps 0", ps}, {"worker 1", own.public_key}, {"worker", any}, {"status", status}});
  CHECK(ring.Find(Raw(NewKeyPair().public_key)) == 0);
  CHECK(ring.Find("short") == 0);
  CHECK(ring.Find(Raw(ps)) == 1);
  CHECK(ring.IsOf(1, "ps 0"));
  CHECK_FALSE(ring.IsOf(1, "ps 1"));
  CHECK_FALSE(ring.IsOf(1, "worker 0"));
  const uint32_t worker = ring.Find(Raw(own.public_key)), every = ring.Find(Raw(any));
  CHECK(ring.NameOf(worker) == "worker 1");
  CHECK(ring.IsOf(worker, "worker 1"));
  CHECK_FALSE(ring.IsOf(worker, "worker 11"));
  CHECK_FALSE(ring.IsOf(worker, "ps 1"));
  CHECK(ring.IsOf(every, "worker 1"));
  CHECK(ring.IsOf(every, "worker 77"));
  CHECK_FALSE(ring.IsOf(every, "ps 0"));
  CHECK(ring.IsOf(ring.Find(Raw(status)), "status"));
  CHECK_FALSE(ring.IsOf(ring.Find(Raw(status)), "worker 1"));
  CHECK_FALSE(ring.IsOf(0, ""));
  CHECK_FALSE(ring.IsOf(1234567, "ps 0"));
  CHECK(ring.KeysOf("ps 0") == std::vector<std::string>{ps});
}

TEST_CASE("key ring: when the list changes a key keeps its number, and a removed one is no longer listed") {
  const KeyPair own = NewKeyPair();
  const std::string old_key = NewKeyPair().public_key, new_key = NewKeyPair().public_key;
  KeyRing ring(own.secret_key, "ps-0.key", {{"ps 0", own.public_key}, {"worker 0", old_key}});
  const uint32_t mine = ring.Find(Raw(own.public_key)), removed = ring.Find(Raw(old_key));
  ring.Replace({{"worker 0", old_key}, {"worker 0", new_key}, {"ps 0", own.public_key}});
  CHECK(ring.KeysOf("worker 0") == std::vector<std::string>{old_key, new_key});
  CHECK(ring.Find(Raw(old_key)) == removed);
  ring.Replace({{"worker 0", new_key}, {"ps 0", own.public_key}});
  CHECK(ring.Find(Raw(own.public_key)) == mine);
  CHECK_FALSE(ring.Listed(removed));
  CHECK_FALSE(ring.IsOf(removed, "worker 0"));
  CHECK(ring.Find(Raw(old_key)) == 0);
  ring.Replace({{"worker 5", new_key}, {"ps 0", own.public_key}, {"worker 0", old_key}});
  CHECK(ring.Find(Raw(old_key)) == removed);
  CHECK(ring.NameOf(ring.Find(Raw(new_key))) == "worker 5");
}

TEST_CASE(
    "key ring: a list with one key twice, or without this task's own, is refused and the old one stays") {
  const KeyPair own = NewKeyPair();
  const std::vector<ListedKey> good = {{"ps 0", own.public_key}};
  CHECK_THROWS_WITH_AS(
      KeyRing(own.secret_key, "ps-0.key", {{"ps 0", NewKeyPair().public_key}}),
      "ps-0.key: its public key is not in cluster.keys, so no task would let this one in. Use the "
      "files of one run of dtrain keygen.",
      UserError);
  KeyRing ring(own.secret_key, "ps-0.key", good);
  std::string log;
  ring.set_log([&](const std::string& line) { log = line; });
  const auto twice = [&] {
    const std::vector<ListedKey> listed = {{"ps 0", own.public_key}, {"worker", own.public_key}};
    return std::make_unique<std::vector<ListedKey>>(listed);
  };
  ring.Take(KeyRing::Read([]() -> decltype(twice()) { return nullptr; }));
  CHECK(log == "");
  ring.Take(KeyRing::Read(twice));
  CHECK(log.find("the list of keys stays as it was: cluster.keys has one key twice") == 0);
  CHECK(ring.IsOf(1, "ps 0"));
  log.clear();
  ring.Take(KeyRing::Read(twice));  // what lasts is told once
  CHECK(log == "");
}

TEST_CASE("key list watch: a list that changes is taken, and nobody waits for one that cannot be read") {
  const KeyPair own = NewKeyPair();
  const auto ring =
      std::make_shared<KeyRing>(own.secret_key, "ps-0.key", std::vector<ListedKey>{{"ps 0", own.public_key}});
  std::promise<void> changed, stuck, server_is_back, over;
  ring->set_log([&](const std::string&) { changed.set_value(); });
  ring->set_source([&, reads = 0]() mutable -> std::unique_ptr<std::vector<ListedKey>> {
    if (++reads == 1) {
      const std::vector<ListedKey> listed = {{"ps 0", own.public_key}, {"worker", NewKeyPair().public_key}};
      return std::make_unique<std::vector<ListedKey>>(listed);
    }
    stuck.set_value();
    server_is_back.get_future().wait();
    over.set_value();
    return nullptr;
  });
  {
    const KeyListWatch watch(ring);
    changed.get_future().wait();
    CHECK(ring->KeysOf("worker").size() == 1);
    stuck.get_future().wait();
  }
  server_is_back.set_value();
  over.get_future().wait();
}

}  // namespace
}  // namespace dtrain::net
