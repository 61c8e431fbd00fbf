#include "trainer/config/launch_fields.h"

#include "trainer/config/field_row.h"

namespace dtrain {
namespace {

constexpr Scope kTask = Scope::kTask;

}  // namespace

std::vector<Field> LaunchFields() {
  return {
      Row(DT_KEY(launch.hosts), FieldType::kHosts, kTask,
          "For `dtrain launch`: by the name or number that stands in the cluster's addresses, how the tasks "
          "of "
          "that machine start (docs/launch.md). user and address: of ssh; directory: where they work; "
          "program: dtrain there; environment: variables; device: keys of `device` that differ there.")
          .Try("{node1: {user: ann, directory: /data/job}}")
          .Unset("as here"),
      Flag(
          DT_KEY(launch.copy), kTask,
          "`dtrain launch` copies dtrain, the libraries beside it and the config to each machine's directory "
          "first, unless they are there already, and runs that copy."),
      Row(DT_KEY(launch.ssh_config), FieldType::kInputPath, kTask,
          "A configuration file for ssh (ssh -F): ports, keys, jump hosts.")
          .Try("cluster.ssh")
          .Unset("the user's own"),
      Number(DT_KEY(launch.silence_s), kTask, {2, 3600},
             "The connection to a machine is lost after so many seconds of silence; its tasks then end by "
             "themselves within 2 s more.")
          .Unit("seconds"),
  };
}

}  // namespace dtrain
