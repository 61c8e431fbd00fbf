#include "trainer/env/assignment.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr size_t kMaxNameBytes = 253;  // RFC 1035, section 2.3.4, as text

// Reader: one text in the short form, with its variable for messages.
class Reader {
 public:
  Reader(const std::string& variable, const std::string& text) : variable_(variable), text_(text) {}

  [[noreturn]] void Refuse(const std::string& rule) const {
    throw UserError("{} = {}; {}. The scheduler sets it: leave it as it is.", variable_, Shown(text_), rule);
  }
  // Splits at commas outside of brackets. No group is empty.
  std::vector<std::string_view> Groups() const;
  // Returns "nodes006b" and "nodes011b" for "nodes[006,011]b".
  std::vector<std::string> Hosts(std::string_view group) const;
  int64_t Number(std::string_view digits) const;

 private:
  void Append(const std::string& text, std::string* host) const;
  // Returns "006", "011", "012", "013" for "006,011-013", which are at most `limit`.
  std::vector<std::string> Numbers(std::string_view list, int64_t limit) const;
  void AddRange(std::string_view range, int64_t limit, std::vector<std::string>* numbers) const;

  const std::string& variable_;
  const std::string& text_;
};

std::vector<std::string_view> SplitAt(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(at, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::vector<std::string_view> Reader::Groups() const {
  std::vector<std::string_view> groups;
  const std::string_view text = text_;
  bool inside = false;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if ((c == '[' && inside) || (c == ']' && !inside)) Refuse("its brackets do not match");
    if (c == '[' || c == ']') inside = c == '[';
    if (i < text.size() && (c != ',' || inside)) continue;
    if (inside) Refuse("a bracket is not closed");
    if (i == begin) Refuse("a name is empty");
    groups.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return groups;
}

std::vector<std::string> Reader::Hosts(std::string_view group) const {
  std::vector<std::string> hosts = {""};
  while (!group.empty()) {
    const size_t open = group.find('[');
    const std::string plain(group.substr(0, open));
    for (std::string& host : hosts) Append(plain, &host);
    if (open == std::string_view::npos) break;
    const size_t close = group.find(']');  // found: Groups() has checked it
    std::vector<std::string> longer;
    const std::vector<std::string> numbers =
        Numbers(group.substr(open + 1, close - open - 1), kMaxRanks / static_cast<int64_t>(hosts.size()));
    for (const std::string& host : hosts) {
      for (const std::string& number : numbers) Append(number, &longer.emplace_back(host));
    }
    hosts = std::move(longer);
    group.remove_prefix(close + 1);
  }
  return hosts;
}

void Reader::Append(const std::string& text, std::string* host) const {
  *host += text;
  if (host->size() > kMaxNameBytes)
    Refuse(fmt::format("has a name of more than {} characters", kMaxNameBytes));
}

std::vector<std::string> Reader::Numbers(std::string_view list, int64_t limit) const {
  std::vector<std::string> numbers;
  for (const std::string_view range : SplitAt(list, ',')) AddRange(range, limit, &numbers);
  return numbers;
}

void Reader::AddRange(std::string_view range, int64_t limit, std::vector<std::string>* numbers) const {
  const size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const int64_t first = Number(low);
  const int64_t last = dash == std::string_view::npos ? first : Number(range.substr(dash + 1));
  if (last < first) Refuse("a range runs backwards");
  if (last - first >= limit - static_cast<int64_t>(numbers->size())) Refuse("is of too many hosts");
  for (int64_t number = first; number <= last; ++number) {
    numbers->push_back(fmt::format("{:0{}}", number, low.size()));
  }
}

int64_t Reader::Number(std::string_view digits) const {
  constexpr size_t kMaxDigits = 18;
  uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value);
  if (digits.size() > kMaxDigits || parsed.ec != std::errc() || parsed.ptr != end) {
    Refuse("a range is of whole numbers");
  }
  return static_cast<int64_t>(value);
}

}  // namespace

std::vector<std::string> ExpandHostList(const std::string& variable, const std::string& text) {
  const Reader reader(variable, text);
  std::vector<std::string> hosts;
  for (const std::string_view group : reader.Groups()) {
    for (std::string& host : reader.Hosts(group)) {
      if (static_cast<int64_t>(hosts.size()) == kMaxRanks) reader.Refuse("is of too many hosts");
      hosts.push_back(std::move(host));
    }
  }
  return hosts;
}

std::vector<int> ExpandCounts(const std::string& variable, const std::string& text) {
  const Reader reader(variable, text);
  std::vector<int> counts;
  int64_t tasks = 0;
  for (std::string_view group : SplitAt(text, ',')) {
    int64_t times = 1;
    if (const size_t open = group.find("(x"); open != std::string_view::npos) {
      if (group.back() != ')') reader.Refuse("must be as 2(x3),1");
      times = reader.Number(group.substr(open + 2, group.size() - open - 3));
      group = group.substr(0, open);
    }
    const int64_t count = reader.Number(group);
    // Division, since a product of such numbers may not fit.
    const int64_t left = kMaxRanks - tasks;
    if (times > kMaxRanks - static_cast<int64_t>(counts.size()) || (count > 0 && times > left / count))
      reader.Refuse("is of too many tasks");
    tasks += times * count;
    counts.insert(counts.end(), static_cast<size_t>(times), static_cast<int>(count));
  }
  return counts;
}

namespace {

const std::vector<std::string> kNodeLists = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"};
const std::vector<std::string> kTasksPerNode = {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"};

// The place of one rank.
struct RankPlace {
  int node;
  int local_rank;
};

[[noreturn]] void RefuseMissing(const std::string& names) {
  throw UserError(
      "{} is not set: --from slurm takes role, index and cluster from what srun sets. Start it with srun: "
      "srun --ntasks=3 dtrain --from slurm --ps 1 --config x.yaml. Or give --role and --index.",
      names);
}

int NeedNumber(const Environment& environment, const std::vector<std::string>& names) {
  const std::optional<int> number = FindNumber(environment, names);
  if (!number) RefuseMissing(names.front());
  return *number;
}

// The batch script has SLURM_PROCID=0 too, and would wait for tasks that were never started.
void RefuseBatchScript(const Environment& environment, int size) {
  const bool batch = environment.count("ENVIRONMENT") != 0 && environment.at("ENVIRONMENT") == "BATCH";
  const bool step =
      FindVariable(environment, {"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NUM_TASKS"}) != nullptr;
  if (!batch || step || size == 1) return;
  throw UserError(
      "SLURM_STEP_ID is not set: this is the batch script itself, which runs once, and not one of the {} "
      "processes of a step. Put srun before it: srun dtrain --from slurm ...",
      size);
}

std::vector<int> TasksPerNode(const Environment& environment, size_t nodes, int size) {
  const Environment::value_type* const variable = FindVariable(environment, kTasksPerNode);
  if (variable == nullptr) {
    if (nodes == 1) return {size};
    if (nodes == static_cast<size_t>(size)) return std::vector<int>(nodes, 1);
    RefuseMissing(kTasksPerNode.back());
  }
  std::vector<int> counts = ExpandCounts(variable->first, variable->second);
  const int sum = std::accumulate(counts.begin(), counts.end(), 0);
  if (counts.size() != nodes || sum != size) {
    throw UserError(
        "{} = {}; must have a number for each of the {} nodes, {} tasks together. Start all with one srun, "
        "without --nodes or --ntasks of its own.",
        variable->first, Shown(variable->second), nodes, size);
  }
  return counts;
}

// Returns the places of all ranks: the nodes get `plane` ranks in turn, as long as they have room.
std::vector<RankPlace> RankPlaces(const std::vector<int>& tasks_per_node, int plane) {
  std::vector<RankPlace> seats;
  std::vector<int> taken(tasks_per_node.size());
  const auto size = static_cast<size_t>(std::accumulate(tasks_per_node.begin(), tasks_per_node.end(), 0));
  while (seats.size() < size) {
    for (size_t node = 0; node < taken.size(); ++node) {
      for (int i = std::min(plane, tasks_per_node[node] - taken[node]); i > 0; --i) {
        seats.push_back({static_cast<int>(node), taken[node]++});
      }
    }
  }
  return seats;
}

// Returns how many ranks a node gets in turn. In "cyclic:block" or "block,NoPack" the parts behind are about
// processors inside a node.
int PlaneOf(const Environment& environment) {
  constexpr const char* kSize = "SLURM_DIST_PLANESIZE";
  const Environment::value_type* const variable = FindVariable(environment, {"SLURM_DISTRIBUTION"});
  if (variable == nullptr) return kMaxRanks;
  const std::string over_nodes = variable->second.substr(0, variable->second.find_first_of(":,"));
  if (over_nodes == "cyclic") return 1;
  if (over_nodes == "block" || over_nodes == "unknown") return kMaxRanks;
  const int plane = over_nodes == "plane" ? FindNumber(environment, {kSize}).value_or(0) : 0;
  if (plane > 0) return plane;
  throw UserError(
      "{} = {}; must be block, cyclic, or plane with its size in {}: others do not tell which rank is on "
      "which node. Use srun --distribution=block.",
      variable->first, Shown(variable->second), kSize);
}

// In a job of several components (srun ... : ...) each component of a step has a distribution of its own, and
// the nodes lie in the order of the components. The variables do not tell these, but what they tell is the
// same in all ranks: either all go on, because each node has one rank and the nodes are in that order, or all
// refuse.
void CheckComponents(const Environment& environment, const std::vector<std::string>& hosts,
                     const std::vector<int>& tasks_per_node) {
  std::vector<std::string> in_order;
  size_t components = 0;
  const int groups = FindNumber(environment, {"SLURM_HET_SIZE", "SLURM_PACK_SIZE"}).value_or(0);
  for (int group = 0; group < groups; ++group) {
    const Environment::value_type* const list =
        FindVariable(environment, {fmt::format("SLURM_JOB_NODELIST_HET_GROUP_{}", group),
                                   fmt::format("SLURM_JOB_NODELIST_PACK_GROUP_{}", group)});
    if (list == nullptr) continue;
    const size_t before = in_order.size();
    for (const std::string& host : ExpandHostList(list->first, list->second)) {
      if (std::find(hosts.begin(), hosts.end(), host) != hosts.end()) in_order.push_back(host);
    }
    components += in_order.size() > before ? 1 : 0;
  }
  const bool single = *std::max_element(tasks_per_node.begin(), tasks_per_node.end()) == 1;
  if (components < 2 || (single && in_order == hosts)) return;
  throw UserError(
      "this step has {} components of a heterogeneous job: which rank is on which node cannot be told, "
      "unless each node has one rank. Start it in one component: srun --het-group=0.",
      components);
}

// Returns the ranks of a node as Slurm writes them: "0,2".
std::string RanksOf(int node, const std::vector<RankPlace>& seats) {
  std::string text;
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    if (seats[rank].node == node) text += fmt::format("{}{}", text.empty() ? "" : ",", rank);
  }
  return text;
}

// Slurm's variables about this process must agree with its computed place.
void CheckPlace(const Environment& environment, int rank, const std::vector<RankPlace>& seats,
                const std::vector<std::string>& hosts) {
  const RankPlace& seat = seats[static_cast<size_t>(rank)];
  const std::string& host = hosts[static_cast<size_t>(seat.node)];
  const std::optional<int> node = FindNumber(environment, {"SLURM_NODEID"});
  const std::optional<int> local_rank = FindNumber(environment, {"SLURM_LOCALID"});
  if (node.value_or(seat.node) != seat.node || local_rank.value_or(seat.local_rank) != seat.local_rank) {
    throw UserError(
        "rank {} is process {} of node {} (SLURM_LOCALID, SLURM_NODEID), and with the distribution of this "
        "step it would be process {} of node {}: the other ranks' hosts cannot be told. Use srun "
        "--distribution=block.",
        rank, local_rank.value_or(seat.local_rank), node.value_or(seat.node), seat.local_rank, seat.node);
  }
  const Environment::value_type* const here = FindVariable(environment, {"SLURM_GTIDS"});
  if (const std::string ranks = RanksOf(seat.node, seats); here != nullptr && here->second != ranks) {
    throw UserError(
        "ranks {} are on node {} (SLURM_GTIDS), and with the distribution of this step they would be {}: the "
        "other ranks' hosts cannot be told. Use srun --distribution=block, and one component.",
        Shown(here->second), seat.node, ranks);
  }
  const Environment::value_type* const name = FindVariable(environment, {"SLURMD_NODENAME"});
  if (name != nullptr && name->second != host) {
    throw UserError(
        "rank {} is on {} (SLURMD_NODENAME), and by the node list of this step it would be on {}: the other "
        "ranks' hosts cannot be told. A step of several components (srun ... : ...) is one such: use one.",
        rank, Shown(name->second), host);
  }
}

// Returns the address of each rank.
std::vector<std::string> Addresses(const SchedulerOptions& options, const std::vector<std::string>& hosts,
                                   const std::vector<RankPlace>& seats) {
  std::vector<std::string> addresses;
  for (const RankPlace& seat : seats) {
    addresses.push_back(AddressOfRank(options, hosts[static_cast<size_t>(seat.node)], seat.local_rank));
  }
  return addresses;
}

}  // namespace

Assignment AssignFromSlurm(const Environment& environment, const SchedulerOptions& options,
                           const ClusterConfig& file) {
  const int rank = NeedNumber(environment, {"SLURM_PROCID"});
  const int size = NeedNumber(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"});
  const Environment::value_type* const list = FindVariable(environment, kNodeLists);
  if (list == nullptr) RefuseMissing(kNodeLists[1]);
  if (rank >= size) {
    throw UserError("SLURM_PROCID = {}; must be below the number of tasks, which is {}. Start it with srun.",
                    rank, size);
  }
  RefuseBatchScript(environment, size);
  const int ps = PsOfRanks(options, file, size, "Slurm step");
  const std::vector<std::string> hosts = ExpandHostList(list->first, list->second);
  const std::vector<int> tasks_per_node = TasksPerNode(environment, hosts.size(), size);
  CheckComponents(environment, hosts, tasks_per_node);
  const std::vector<RankPlace> seats = RankPlaces(tasks_per_node, PlaneOf(environment));
  CheckPlace(environment, rank, seats, hosts);
  Assignment assignment = AssignByRank(rank, ps, Addresses(options, hosts, seats));
  const Environment::value_type* const job = FindVariable(environment, {"SLURM_JOB_ID", "SLURM_JOBID"});
  assignment.name =
      fmt::format("rank {} of {} of Slurm job {}", rank, size, job == nullptr ? "?" : job->second);
  return assignment;
}

}  // namespace dtrain
