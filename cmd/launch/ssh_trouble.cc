#include "cmd/launch/ssh_trouble.h"

#include <fmt/format.h>

#include <vector>

namespace dtrain {
namespace {

struct Trouble {
  const char* words;   // of ssh, of a shell, or of an older dtrain
  const char* remedy;  // {} is the machine, [] how ssh gets there; a command stands last, to be copied
  bool of_dtrain = false;
};

constexpr char kOlder[] = "An older dtrain is there. Install this version, or set launch.copy: true.";

const std::vector<Trouble>& Troubles() {
  static const std::vector<Trouble> all = {
      {"unknown command", kOlder, true},
      {"unknown option", kOlder, true},
      {"Host key verification failed",
       "Its key is not known here, or has changed: compare it while you connect once by hand: ssh [] true"},
      {"Permission denied (", "It takes none of your keys. Set launch.hosts.{}.user, or: ssh-copy-id []"},
      {"Could not resolve hostname", "Set launch.hosts.{}.address to where ssh reaches it."},
      {"Connection refused", "Does sshd run there? A port other than 22 goes into launch.ssh_config."},
      {"timed out", "Is it up, and can it be reached from here?"},
      {"No route to host", "Is it up, and can it be reached from here?"},
      {"Exec format error",
       "It is a dtrain for another kind of processor. Install one for that machine, or set "
       "launch.hosts.{}.program."},
      {"error while loading shared libraries",
       "Install the libraries that scripts/packages.txt names there, or launch the packaged dtrain with "
       "launch.copy: true."},
      {"ssh: No such file or directory",
       "That is this machine's own client: install it (openssh-client), or add its directory to PATH."},
      {"No such file or directory",
       "Install dtrain there under the same path, set launch.hosts.{}.program, or launch.copy: true."},
      {"not found", "Install dtrain there, set launch.hosts.{}.program, or launch.copy: true."},
      {"Permission denied", "Is launch.hosts.{}.program a program that this user may run?"},
  };
  return all;
}

std::string Replaced(std::string text, const std::string& mark, const std::string& by) {
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += by.size()) {
    text.replace(at, mark.size(), by);
  }
  return text;
}

// Empty where the words have it themselves.
std::string Remedy(const std::string& said, const std::string& machine, const std::string& login) {
  const bool own = said.rfind("dtrain: ", 0) == 0;
  for (const Trouble& trouble : Troubles()) {
    const bool fits = said.find(trouble.words) != std::string::npos;
    if (fits && own == trouble.of_dtrain)
      return Replaced(Replaced(trouble.remedy, "{}", machine), "[]", login);
  }
  return own ? "" : "See what dtrain launch --dry-run prints, and try that by hand.";
}

}  // namespace

std::string WithStop(const std::string& said) {
  if (said.empty()) return "it ended without a word.";
  return said.back() == '.' || said.back() == '?' ? said : said + ".";
}

std::string WithRemedy(const std::string& said, const std::string& machine, const std::string& login) {
  const std::string remedy = Remedy(said, machine, login);
  return WithStop(said) + (remedy.empty() ? "" : " " + remedy);
}

bool IsPassing(const std::string& said) {
  // A machine that is slow to let us in, unlike one that cannot be reached ("connect to host ... timed out").
  if (said.find("Connection to ") != std::string::npos && said.find("timed out") != std::string::npos) {
    return true;
  }
  for (const char* words :
       {"Connection closed by", "Connection reset by", "kex_exchange_identification", "Timeout, server"}) {
    if (said.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace dtrain
