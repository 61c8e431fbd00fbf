// Keys of a run: each task has a CURVE key pair and a list of the public keys of all tasks. Keys are Z85
// text, 40 characters. docs/security.md says who holds which key.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dtrain::net {

struct KeyPair {
  std::string public_key;
  std::string secret_key;
};

// Returns a new random pair. Throws UserError where libzmq was built without CURVE.
KeyPair NewKeyPair();
// Returns the public key of a valid secret key.
std::string PublicKeyOf(const std::string& secret_key);

// ListedKey: a public key and whose it is: "ps 0", "worker 3", "worker" (of any worker) or "status".
struct ListedKey {
  std::string name;
  std::string key;

  bool operator==(const ListedKey& other) const { return name == other.name && key == other.key; }
};

// KeyText: keys as text, a line for each: its name, white space, the key. A line that begins with # is a
// comment. The secret key of a task has the name "secret".
struct KeyText {
  std::string secret_key;  // empty: there is none
  std::vector<ListedKey> listed;
};
// Throws UserError with "SOURCE:LINE", the rule and the remedy; never with a secret key.
KeyText ParseKeyText(std::string_view text, const std::string& source);
// Returns the line of one key, with its newline.
std::string KeyLine(const ListedKey& key);

// KeyRing: the pair of this task and the listed keys. A listed key has a number, from 1, which stays the same
// when the list changes. Thread: any.
class KeyRing {
 public:
  // `secret_name`: what messages call the own key: "worker-1.key". Throws UserError when the list has one key
  // twice, or not this task's own.
  KeyRing(const std::string& secret_key, std::string secret_name, const std::vector<ListedKey>& listed);

  const KeyPair& own() const { return own_; }
  const std::string& secret_name() const { return secret_name_; }

  // Returns the number of a public key, given as its 32 bytes; 0: it is not listed.
  uint32_t Find(std::string_view bytes) const;
  // Whether the key of this number is still listed. It costs one atomic load.
  bool Listed(uint32_t number) const;
  // Whether the key of this number is listed for this task: "ps 0". A key for "worker" is of every worker.
  bool IsOf(uint32_t number, std::string_view task) const;
  // Returns whose key this is: "worker 1"; empty: it is not listed.
  std::string NameOf(uint32_t number) const;
  // Returns the keys that are listed for exactly this name: two while a key is being changed.
  std::vector<std::string> KeysOf(std::string_view name) const;

  // Takes another list. Throws UserError, and keeps the old one, where the constructor would.
  void Replace(const std::vector<ListedKey>& listed);
  // Where the list is kept; may be empty. It throws what says why the list cannot be had, and returns null
  // when that is as at the last call. Call set_source() before threads begin.
  using Source = std::function<std::unique_ptr<std::vector<ListedKey>>()>;
  void set_source(Source read) { read_ = std::move(read); }
  const Source& source() const { return read_; }
  // Takes what the source gave, or why it gave nothing. The log gets a line about the change, or about why
  // the old list stays. Thread: one.
  struct News {
    std::unique_ptr<std::vector<ListedKey>> listed;  // null: the list is as it was
    std::string problem;                             // empty: none
  };
  static News Read(const Source& source);
  void Take(News news);

  // Receives lines for the log; may be empty. Call it before threads begin.
  void set_log(std::function<void(const std::string&)> log) { log_ = std::move(log); }
  void Log(const std::string& line) const {
    if (log_) log_(line);
  }

 private:
  // The max number of keys that one process meets; those of removed lines count too.
  static constexpr size_t kMaxKeys = 65536;

  void CheckOwn(const std::vector<ListedKey>& listed) const;

  const KeyPair own_;
  const std::string secret_name_;
  Source read_;
  std::function<void(const std::string&)> log_;
  std::string problem_;       // of the last Take(); what lasts is logged once
  mutable std::mutex mutex_;  // protects the two below
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> numbers_;  // by the key as text
  const std::unique_ptr<std::atomic<bool>[]> is_listed_;
};

// KeyListWatch: has a ring's list read again when it changes, once a second, on a thread of its own. That may
// wait for a file server that does not answer; nobody waits for it. Owner: the one that lets peers in.
class KeyListWatch {
 public:
  explicit KeyListWatch(std::shared_ptr<KeyRing> ring);
  ~KeyListWatch();  // it never waits for the source
  KeyListWatch(const KeyListWatch&) = delete;
  KeyListWatch& operator=(const KeyListWatch&) = delete;

 private:
  struct Shared;
  static void Run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace dtrain::net
