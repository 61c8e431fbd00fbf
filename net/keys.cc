#include "net/keys.h"

#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <map>
#include <set>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"

namespace dtrain::net {
namespace {

constexpr size_t kTextSize = 40;
constexpr size_t kKeyBytes = 32;
using Bytes = std::array<uint8_t, kKeyBytes>;
constexpr char kBlank[] = " \t\r";
constexpr char kSecret[] = "secret";
constexpr milliseconds kRefresh{1000};

// libzmq's decoder takes any characters of 7 bits.
bool IsZ85(std::string_view text) {
  constexpr std::string_view kOthers = ".-:+=^!/*?&<>()[]{}@%$#";
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

bool IsKey(const std::string& text) {
  Bytes bytes;
  return text.size() == kTextSize && IsZ85(text) && zmq_z85_decode(bytes.data(), text.c_str()) != nullptr;
}

// "3" of "worker 3"; no leading zeros, so that each task has one name.
bool IsIndex(std::string_view text) {
  const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return !text.empty() && text.size() <= 9 && digits && (text == "0" || text[0] != '0');
}

bool IsName(const std::vector<std::string_view>& words) {
  const std::string_view role = words[0];
  if (words.size() == 1) return role == "worker" || role == "status" || role == kSecret;
  return words.size() == 2 && (role == "ps" || role == "worker") && IsIndex(words[1]);
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    if (line.empty()) return words;
    const size_t end = std::min(line.find_first_of(kBlank), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

}  // namespace

KeyPair NewKeyPair() {
  char public_key[kTextSize + 1], secret_key[kTextSize + 1];
  if (zmq_curve_keypair(public_key, secret_key) != 0) {
    throw UserError(
        "this libzmq was built without CURVE, so there can be no keys. Install libzmq5 of Debian.");
  }
  return {public_key, secret_key};
}

std::string PublicKeyOf(const std::string& secret_key) {
  char public_key[kTextSize + 1];
  DT_CHECK(IsKey(secret_key));
  if (zmq_curve_public(public_key, secret_key.c_str()) != 0) {
    throw UserError(
        "this libzmq was built without CURVE, so there can be no keys. Install libzmq5 of Debian.");
  }
  return public_key;
}

KeyText ParseKeyText(std::string_view text, const std::string& source) {
  KeyText keys;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::vector<std::string_view> words = Words(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty() || words[0][0] == '#') continue;
    const std::string key(words.back());
    words.pop_back();
    if (words.empty() || !IsName(words)) {
      throw UserError(
          "{}:{}: not a line of a key; must be ps INDEX, worker INDEX, worker or status, and then its public "
          "key. Run dtrain keygen again.",
          source, number);
    }
    if (!IsKey(key)) {
      throw UserError("{}:{}: the key has {} characters; must be 40 of Z85. Run dtrain keygen again.", source,
                      number, key.size());
    }
    std::string name(words[0]);
    if (words.size() == 2) name += " " + std::string(words[1]);
    if (name != kSecret) {
      keys.listed.push_back({name, key});
    } else if (keys.secret_key.empty()) {
      keys.secret_key = key;
    } else {
      throw UserError("{}:{}: a second secret key; a task has one. Remove one of the two.", source, number);
    }
  }
  return keys;
}

std::string KeyLine(const ListedKey& key) { return key.name + " " + key.key + "\n"; }

KeyRing::KeyRing(const std::string& secret_key, std::string secret_name, const std::vector<ListedKey>& listed)
    : own_{PublicKeyOf(secret_key), secret_key},
      secret_name_(std::move(secret_name)),
      is_listed_(new std::atomic<bool>[kMaxKeys]()) {
  Replace(listed);
}

void KeyRing::CheckOwn(const std::vector<ListedKey>& listed) const {
  std::map<std::string, std::string> keys;
  for (const ListedKey& each : listed) {
    const auto [first, is_new] = keys.emplace(each.key, each.name);
    if (is_new) continue;
    throw UserError(
        "cluster.keys has one key twice, for {} and for {}; each task has a key of its own. Remove the line "
        "that "
        "is wrong, and run dtrain keygen again.",
        first->second, each.name);
  }
  if (keys.count(own_.public_key) == 1) return;
  throw UserError(
      "{}: its public key is not in cluster.keys, so no task would let this one in. Use the files "
      "of one run of dtrain keygen.",
      secret_name_);
}

void KeyRing::Replace(const std::vector<ListedKey>& listed) {
  CheckOwn(listed);
  std::lock_guard<std::mutex> hold(mutex_);
  if (names_.size() + listed.size() >= kMaxKeys) {
    throw UserError(
        "cluster.keys has {} keys and has had {} since the start; both together must be below {}. "
        "Start this task again.",
        listed.size(), names_.size(), kMaxKeys);
  }
  std::set<uint32_t> kept;
  for (const ListedKey& each : listed) {
    const auto [place, is_new] = numbers_.emplace(each.key, static_cast<uint32_t>(names_.size() + 1));
    if (is_new) names_.push_back(each.name);
    // A key that has become another's is a new one to those who remember its number.
    if (names_[place->second - 1] != each.name) {
      is_listed_[place->second].store(false);
      names_.push_back(each.name);
      place->second = static_cast<uint32_t>(names_.size());
    }
    kept.insert(place->second);
  }
  for (uint32_t number = 1; number <= names_.size(); ++number) {
    is_listed_[number].store(kept.count(number) == 1);
  }
}

uint32_t KeyRing::Find(std::string_view bytes) const {
  char text[kTextSize + 1];
  if (bytes.size() != kKeyBytes) return 0;
  zmq_z85_encode(text, reinterpret_cast<const uint8_t*>(bytes.data()), kKeyBytes);
  std::lock_guard<std::mutex> hold(mutex_);
  const auto found = numbers_.find(text);
  return found != numbers_.end() && Listed(found->second) ? found->second : 0;
}

bool KeyRing::Listed(uint32_t number) const {
  return number < kMaxKeys && is_listed_[number].load(std::memory_order_relaxed);
}

std::string KeyRing::NameOf(uint32_t number) const {
  if (!Listed(number)) return "";
  std::lock_guard<std::mutex> hold(mutex_);
  return names_[number - 1];
}

bool KeyRing::IsOf(uint32_t number, std::string_view task) const {
  const std::string name = NameOf(number);
  if (name.empty()) return false;
  return name == task || (name == "worker" && task.substr(0, 7) == "worker ");
}

std::vector<std::string> KeyRing::KeysOf(std::string_view name) const {
  std::lock_guard<std::mutex> hold(mutex_);
  std::vector<std::pair<uint32_t, std::string>> found;
  for (const auto& [key, number] : numbers_) {
    if (Listed(number) && names_[number - 1] == name) found.emplace_back(number, key);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> keys;
  for (auto& [number, key] : found) keys.push_back(std::move(key));
  return keys;
}

KeyRing::News KeyRing::Read(const Source& source) {
  try {
    return {source(), ""};
  } catch (const std::exception& error) {
    return {nullptr, FailureText(error)};
  }
}

void KeyRing::Take(News news) {
  if (news.listed != nullptr) {
    try {
      Replace(*news.listed);
      Log("cluster.keys was read again: it has " + std::to_string(news.listed->size()) + " keys");
    } catch (const std::exception& error) {
      news.problem = FailureText(error);
    }
  } else if (news.problem.empty()) {
    return;
  }
  if (!news.problem.empty() && news.problem != problem_) {
    Log("the list of keys stays as it was: " + news.problem);
  }
  problem_ = std::move(news.problem);
}

// The thread has a part in it, and uses the ring only while it holds the mutex and the watch is there.
struct KeyListWatch::Shared {
  KeyRing::Source source;
  std::mutex mutex;  // protects the ring
  std::condition_variable ended;
  std::shared_ptr<KeyRing> ring;  // null: the watch has ended
};

KeyListWatch::KeyListWatch(std::shared_ptr<KeyRing> ring) : shared_(std::make_shared<Shared>()) {
  shared_->source = ring->source();
  shared_->ring = std::move(ring);
  if (shared_->source) std::thread(&KeyListWatch::Run, shared_).detach();
}

KeyListWatch::~KeyListWatch() {
  {
    std::lock_guard<std::mutex> hold(shared_->mutex);
    shared_->ring.reset();
  }
  shared_->ended.notify_one();
}

void KeyListWatch::Run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock<std::mutex> hold(shared->mutex);
  while (!shared->ended.wait_for(hold, kRefresh, [&] { return shared->ring == nullptr; })) {
    hold.unlock();
    KeyRing::News news = KeyRing::Read(shared->source);
    hold.lock();
    if (shared->ring != nullptr) shared->ring->Take(std::move(news));
  }
}

}  // namespace dtrain::net
