// Key files: the directory that security.keys names, as dtrain keygen makes it, and the descriptor on which a
// parent hands keys to a child. A task reads two files: cluster.keys and its own secret key.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/keys.h"

namespace dtrain::net {

constexpr char kKeyListName[] = "cluster.keys";

// "ps-0.key" of "ps 0".
std::string SecretFileName(std::string_view name);

// Opens the keys of the task `name` ("worker 3") in `directory`: its own secret key, or for a worker that has
// none that of all workers. The ring takes the list again when it changes. Throws UserError with path, rule
// and remedy for a missing or wrong file, and for one that others may read (a secret key) or write.
std::shared_ptr<KeyRing> OpenKeyRing(const std::string& directory, const std::string& name);

// Reads the keys of a descriptor, a file from its beginning, to the end, and closes it. Throws UserError when
// they are not whole.
std::shared_ptr<KeyRing> ReadKeyRing(int fd, const std::string& name);
// Returns the text for ReadKeyRing().
std::string KeyRingText(const std::string& secret_key, const std::vector<ListedKey>& listed);

// Returns the list of `directory`; none if there is no such file. Throws UserError like OpenKeyRing().
std::vector<ListedKey> ReadKeyList(const std::string& directory);
// Returns the secret key in a file. Throws UserError like OpenKeyRing().
std::string ReadSecretFile(const std::string& path);
// Writes a secret key into a new file with mode 0600. Throws UserError when a file is there already.
void WriteSecretFile(const std::string& path, const std::string& name, const std::string& secret_key);

}  // namespace dtrain::net
