#include "trainer/config/device_fields.h"

#include "trainer/config/field_row.h"

namespace dtrain {
namespace {

constexpr Scope kTask = Scope::kTask;
constexpr double kLargestDevice = 1023;

}  // namespace

std::vector<Field> DeviceFields() {
  return {
      Choice(DT_KEY(device.kind), kTask,
             {{"auto", DeviceKind::kAuto}, {"cpu", DeviceKind::kCpu}, {"cuda", DeviceKind::kCuda}},
             "What a worker computes on. auto: the GPUs of device.ids where all of them are there and cuBLAS "
             "is, else the processor; cuda: these GPUs. A ps in a process of its own never touches a GPU.")
          .OtherNames({{"gpu", "cuda"}}),
      Numbers(DT_KEY(device.ids), kTask, {0, kLargestDevice},
              "The devices of a worker: GPUs as CUDA numbers those that CUDA_VISIBLE_DEVICES leaves (dtrain "
              "devices lists them), or groups of threads of the processor. With several, each takes a batch "
              "of train.batch_size in every step, and the gradient is the mean over all their rows (towers, "
              "docs/training.md). Give all workers the same number.")
          .Unit("ids")
          .Try("[0, 1]"),
      Flag(DT_KEY(device.soft_placement), kTask,
           "Where device.kind is cuda and a GPU or cuBLAS is missing: true warns and takes the processor; "
           "false ends with exit code 2. auto never needs a GPU.")
          .OnlyWith("device.kind", "cuda"),
      Number(DT_KEY(device.memory_fraction), kTask, {0, 1, true},
             "The share of each GPU's memory that one worker may take at most; with --in-process all tasks "
             "together. cuBLAS and the CUDA runtime take some more.")
          .Unit("of the memory")
          .Try("0.5"),
      Flag(DT_KEY(device.tf32), kTask,
           "Products by the tensor cores of a GPU with 10 bits of mantissa: faster, and results agree with "
           "those of a processor to 3 digits only.")
          .OnlyWithAny("device.kind", {"auto", "cuda"}),
      Number(DT_KEY(device.threads), kTask, {1, 1024},
             "Threads of one task's arithmetic on its processor; 1 where device.ids has several.")
          .Unit("threads"),
  };
}

}  // namespace dtrain
