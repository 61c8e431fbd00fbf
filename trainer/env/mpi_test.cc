#include "trainer/config/data_config.h"
#include "trainer/env/assignment.h"

#include <doctest/doctest.h>

#include "trainer/env/env_test_util.h"

namespace dtrain {
namespace {

using Addresses = std::vector<std::string>;

// As Open MPI leaves it, with `here` of the ranks on this machine.
Environment OpenMpi(int rank, int size, int here) {
  return {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(size)},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(here)},
          {"PMIX_RANK", std::to_string(rank)}};
}

ClusterConfig File() {
  ClusterConfig file;
  file.ps = {"p:1"};
  file.worker = {"a:1", "b:1"};
  return file;
}

TEST_CASE("mpi: without a cluster all ranks of one machine are at its loopback address") {
  const Assignment assignment = AssignFromMpi(OpenMpi(2, 3, 3), {1, 7000}, {});
  CHECK(assignment.cluster.ps == Addresses{"127.0.0.1:7000"});
  CHECK(assignment.cluster.worker == Addresses{"127.0.0.1:7001", "127.0.0.1:7002"});
  CHECK(assignment.task->role == Role::kWorker);
  CHECK(assignment.task->index == 1);
  CHECK(assignment.name == "rank 2 of 3 of mpirun");
}

TEST_CASE("mpi: the file's cluster has the address of each rank") {
  const Assignment ps = AssignFromMpi(OpenMpi(0, 3, 1), {1, {}}, File());
  CHECK(ps.cluster.ps == Addresses{"p:1"});
  CHECK(ps.cluster.worker == Addresses{"a:1", "b:1"});
  CHECK(ps.task->role == Role::kPs);
  CHECK(AssignFromMpi(OpenMpi(1, 3, 1), {}, File()).task->index == 0);
}

TEST_CASE("mpi: Hydra's variables do as well, and those of PMIx with a file") {
  const Environment hydra = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}};
  CHECK(AssignFromMpi(hydra, {1, {}}, {}).cluster.worker == Addresses{"127.0.0.1:9001"});
  CHECK(AssignFromMpi({{"PMIX_RANK", "2"}}, {1, {}}, File()).task->index == 1);
  CHECK(ErrorOf([] {
          AssignFromMpi({{"PMIX_RANK", "2"}}, {1, {}}, {});
        }).find("PMIX_RANK is set, but nothing") == 0);
}

TEST_CASE("mpi: variables of two kinds of mpirun that contradict each other are refused by name") {
  Environment nested = OpenMpi(0, 3, 3);
  nested["PMI_RANK"] = "1";
  CHECK(ErrorOf([&] {
          AssignFromMpi(nested, {1, {}}, {});
        }).find("OMPI_COMM_WORLD_RANK = 0 and PMI_RANK = 1: which of them is of this mpirun?") == 0);
  nested["PMI_RANK"] = "0";
  nested["PMI_SIZE"] = "2";
  CHECK(ErrorOf([&] {
          AssignFromMpi(nested, {1, {}}, {});
        }).find("OMPI_COMM_WORLD_SIZE = 3 and PMI_SIZE = 2:") == 0);
  nested["SLURM_PROCID"] = "0";  // of the daemon
  CHECK(AssignFromMpi(nested, {1, {}}, {}).task->role == Role::kPs);
  nested.erase("SLURM_PROCID");
  nested["PMI_SIZE"] = "3";
  CHECK(AssignFromMpi(nested, {1, {}}, {}).task->role == Role::kPs);
}

TEST_CASE("mpi: ranks on several machines need their addresses in the file") {
  const std::string text = ErrorOf([] { AssignFromMpi(OpenMpi(0, 3, 2), {1, {}}, {}); });
  CHECK(Contains(text, "only 2 of 3 ranks are on this machine"));
  CHECK(Contains(text, "Write cluster.ps and cluster.worker"));
  const Environment unknown = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  CHECK(Contains(ErrorOf([&] { AssignFromMpi(unknown, {1, {}}, {}); }), "PMI_RANK does not tell"));
}

TEST_CASE("mpi: a file of another size, or with other ps, is refused with both numbers") {
  const auto error = [](int size, int ps) {
    return ErrorOf([&] { AssignFromMpi(OpenMpi(0, size, size), {ps, {}}, File()); });
  };
  CHECK(error(4, 1).find(
            "mpirun has started 4 ranks of which 1 is ps, and the file's cluster has 1 ps and 2 workers") ==
        0);
  CHECK(Contains(error(3, 2), "of which 2 are ps"));
  CHECK(Contains(error(4, 1), "--set cluster=null"));
}

TEST_CASE("mpi: a number of ranks is held against the limit before there is memory for them") {
  CHECK(ErrorOf([] {
          AssignFromMpi(OpenMpi(0, 65537, 65537), {1, {}}, {});
        }).find("this run of mpirun has 65537 ranks; must be at most 65536.") == 0);
}

TEST_CASE("mpi: what has no effect, or no rank, is refused") {
  CHECK(ErrorOf([] {
          AssignFromMpi(OpenMpi(0, 3, 3), {1, 7000}, File());
        }).find("--base-port 7000: has no effect") == 0);
  CHECK(ErrorOf([] { AssignFromMpi(OpenMpi(3, 3, 3), {1, {}}, {}); }).find("OMPI_COMM_WORLD_RANK = 3;") == 0);
  CHECK(ErrorOf([] { AssignFromMpi(OpenMpi(0, 3, 3), {}, {}); }).find("--ps is missing") == 0);
  const std::string missing = ErrorOf([] { AssignFromMpi({}, {1, {}}, {}); });
  CHECK(missing.find("OMPI_COMM_WORLD_RANK, PMI_RANK and PMIX_RANK are not set") == 0);
  CHECK(Contains(missing, "mpirun -np 3"));
}

TEST_CASE("mpi: standard input, which rank 0 alone has, is refused in all ranks, with the remedy") {
  DataConfig data;
  data.train.format = DataFormat::kCsv;
  data.train.path = {"-"};
  const auto refusal = [&](const Environment& environment, bool from_mpi = true) {
    return ErrorOf([&] { RefuseInputOfMpi(environment, from_mpi, data); });
  };
  CHECK(
      refusal({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}}) ==
      "data.train.path = -; standard input, which mpirun gives to rank 0 alone, a ps that reads no rows "
      "(OMPI_COMM_WORLD_RANK = 1 here). Name files that each worker sees, or a command that writes the rows: "
      "--set 'data.train.path=exec:cat FILE'.");
  for (const char* rank : {"0", "1", "2"}) {
    CHECK(Contains(refusal({{"PMI_RANK", rank}, {"PMI_SIZE", "3"}}, false), "data.train.path = -"));
    CHECK(Contains(refusal({{"PMIX_RANK", rank}}), "PMIX_RANK"));
  }
  CHECK(refusal({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}, false) == "");
  CHECK(refusal({}, false) == "");
  // srun gives its input to each of its ranks, which may have a rank of PMI, too.
  CHECK(refusal({{"PMI_RANK", "1"}, {"SLURM_PROCID", "1"}}, false) == "");
  data.train.path = {"rows.csv"};
  CHECK(refusal({{"PMIX_RANK", "1"}}) == "");
  data.test = data.train;
  data.test.path = {"-"};
  CHECK(Contains(refusal({{"PMIX_RANK", "1"}}), "data.test.path = -"));
}

}  // namespace
}  // namespace dtrain
