#include "trainer/config/data_config.h"
#include "trainer/env/assignment.h"

#include "base/error.h"
#include "base/names.h"

namespace dtrain {
namespace {

struct Family {
  const char* rank;
  const char* size;        // empty: this family has none
  const char* local_size;  // ranks on this machine; empty: this family has none
};
constexpr Family kFamilies[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},  // Open MPI
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},  // Hydra: MPICH, Intel MPI
    {"PMIX_RANK", "", ""},
};

// An mpirun that was started within another one of a different kind passes on the other's variables. Under
// Slurm they may be those of mpirun's own daemons, which srun started.
void CheckOthers(const Environment& environment, const Family& family) {
  if (FindVariable(environment, {"SLURM_PROCID"}) != nullptr) return;
  const auto check = [&](const char* own, const char* others) {
    const std::optional<int> mine = FindNumber(environment, {own}),
                             theirs = FindNumber(environment, {others});
    if (!mine || !theirs || *mine == *theirs) return;
    throw UserError("{} = {} and {} = {}: which of them is of this mpirun? Unset the other: env -u {} ...",
                    own, *mine, others, *theirs, others);
  };
  for (const Family& other : kFamilies) {
    check(family.rank, other.rank);
    check(family.size, other.size);
  }
}

const Family& FamilyOf(const Environment& environment) {
  for (const Family& family : kFamilies) {
    if (FindVariable(environment, {family.rank}) == nullptr) continue;
    CheckOthers(environment, family);
    return family;
  }
  throw UserError(
      "OMPI_COMM_WORLD_RANK, PMI_RANK and PMIX_RANK are not set: --from mpi takes this process's rank from "
      "what mpirun sets. Start it with mpirun: mpirun -np 3 dtrain --from mpi --ps 1 --config x.yaml. Or "
      "give --role and --index.");
}

// PMIx gives a process only its rank; the number of ranks is then that of the file's cluster.
int SizeOf(const Environment& environment, const Family& family, const ClusterConfig& file) {
  if (const std::optional<int> size = FindNumber(environment, {family.size})) return *size;
  const size_t in_file = file.ps.size() + file.worker.size();
  if (in_file > 0) return static_cast<int>(in_file);
  throw UserError(
      "{} is set, but nothing says how many ranks there are. Write cluster.ps and cluster.worker into the "
      "file, an address for each rank; under Slurm --from slurm needs neither.",
      family.rank);
}

// Returns the file's addresses in the order of the ranks.
std::vector<std::string> FileAddresses(const SchedulerOptions& options, const ClusterConfig& file, int ps,
                                       int size) {
  const size_t in_file = file.ps.size() + file.worker.size();
  if (options.base_port) {
    throw UserError(
        "--base-port {}: has no effect, for the file's cluster has the address of each rank. Leave it out, "
        "or take loopback addresses: --set cluster=null.",
        *options.base_port);
  }
  if (static_cast<int>(file.ps.size()) != ps || static_cast<int>(in_file) != size) {
    throw UserError(
        "mpirun has started {} of which {} {} ps, and the file's cluster has {} ps and {}. Start {} with "
        "--ps {}, or, with all of them on this machine, leave the cluster out: --set cluster=null.",
        Plural(size, "rank"), ps, ps == 1 ? "is" : "are", file.ps.size(),
        Plural(static_cast<int64_t>(file.worker.size()), "worker"), in_file, file.ps.size());
  }
  std::vector<std::string> addresses = file.ps;
  addresses.insert(addresses.end(), file.worker.begin(), file.worker.end());
  return addresses;
}

std::vector<std::string> LoopbackAddresses(const Environment& environment, const Family& family,
                                           const SchedulerOptions& options, int size) {
  const std::optional<int> here = FindNumber(environment, {family.local_size});
  if (here != size) {
    const std::string why =
        here ? fmt::format("only {} of {} ranks are on this machine ({})", *here, size, family.local_size)
             : fmt::format("{} does not tell whether all are on this machine", family.rank);
    throw UserError(
        "the file has no cluster, and {}: which host has which rank is not known here. Write cluster.ps and "
        "cluster.worker into the file, an address for each rank, first the ps.",
        why);
  }
  std::vector<std::string> addresses;
  for (int rank = 0; rank < size; ++rank) addresses.push_back(AddressOfRank(options, "127.0.0.1", rank));
  return addresses;
}

}  // namespace

void RefuseInputOfMpi(const Environment& environment, bool from_mpi, const DataConfig& data) {
  if (!from_mpi && FindVariable(environment, {"SLURM_PROCID"}) != nullptr) return;
  const auto reads = [](const DataSourceConfig& source) {
    return ReadsPipe(source) && IsStandardInput(source.path[0]);
  };
  if (!reads(data.train) && !reads(data.test)) return;
  const char* const key = reads(data.train) ? "data.train.path" : "data.test.path";
  for (const Family& family : kFamilies) {
    const std::optional<int> rank = FindNumber(environment, {family.rank});
    if (!rank || FindNumber(environment, {family.size}) == 1) continue;
    throw UserError(
        "{} = -; standard input, which mpirun gives to rank 0 alone, a ps that reads no rows ({} = {} here). "
        "Name files that each worker sees, or a command that writes the rows: --set '{}=exec:cat FILE'.",
        key, family.rank, *rank, key);
  }
}

Assignment AssignFromMpi(const Environment& environment, const SchedulerOptions& options,
                         const ClusterConfig& file) {
  const Family& family = FamilyOf(environment);
  const int rank = *FindNumber(environment, {family.rank});
  const int size = SizeOf(environment, family, file);
  if (rank >= size) {
    throw UserError(
        "{} = {}; must be below the number of ranks, which is {}. Start as many as there are addresses.",
        family.rank, rank, size);
  }
  const int ps = PsOfRanks(options, file, size, "run of mpirun");
  const bool in_file = !file.ps.empty() || !file.worker.empty();
  Assignment assignment = AssignByRank(rank, ps,
                                       in_file ? FileAddresses(options, file, ps, size)
                                               : LoopbackAddresses(environment, family, options, size));
  assignment.name = fmt::format("rank {} of {} of mpirun", rank, size);
  return assignment;
}

}  // namespace dtrain
