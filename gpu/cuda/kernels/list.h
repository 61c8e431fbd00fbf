// The list of all kernels. A kernel's number is its place here; both runtimes build their tables from it.
#pragma once

#include "gpu/cuda/kernels/activation.h"
#include "gpu/cuda/kernels/byte_rows.h"
#include "gpu/cuda/kernels/column_sums.h"
#include "gpu/cuda/kernels/elementwise.h"
#include "gpu/cuda/kernels/kernel.h"
#include "gpu/cuda/kernels/loss.h"
#include "gpu/cuda/kernels/optimizer.h"
#include "gpu/cuda/kernels/rows.h"
#include "gpu/cuda/kernels/softmax.h"

namespace dtrain::gpu::cuda {

template <typename... Bodies>
struct KernelList {
  static constexpr int kCount = sizeof...(Bodies);
};

template <typename... A, typename... B, typename... Rest>
auto Joined(KernelList<A...>, KernelList<B...>, Rest... rest) {
  if constexpr (sizeof...(Rest) == 0) {
    return KernelList<A..., B...>();
  } else {
    return Joined(KernelList<A..., B...>(), rest...);
  }
}

using ActivationKernels =
    KernelList<Each<ActivateFunction<Sigmoid>>, Each<ActivateFunction<Tanh>>, Each<ActivateFunction<Relu>>,
               Each<BackwardFunction<Sigmoid>>, Each<BackwardFunction<Tanh>>, Each<BackwardFunction<Relu>>>;

using ElementwiseKernels =
    KernelList<ScaleKernel, SumKernel<false>, SumKernel<true>, NonFiniteKernel,
               Each<ToHalfFunction<Half::kFloat16>>, Each<ToHalfFunction<Half::kBfloat16>>,
               Each<FromHalfFunction<Half::kFloat16>>, Each<FromHalfFunction<Half::kBfloat16>>>;

// Each rule with the plain gradient and with the shaped one.
template <typename... Rules>
using StepKernels =
    KernelList<Each<StepFunction<Rules, PlainSlope>>..., Each<StepFunction<Rules, ShapedSlope>>...>;
using OptimizerKernels = StepKernels<SgdRule, MomentumStepRule<false>, MomentumStepRule<true>,
                                     AdagradStepRule, RmspropStepRule, AdamStepRule, FtrlStepRule>;

using RowKernels = KernelList<BiasKernel<Identity, 1>, BiasKernel<Identity, 4>, BiasKernel<Sigmoid, 1>,
                              BiasKernel<Sigmoid, 4>, BiasKernel<Tanh, 1>, BiasKernel<Tanh, 4>,
                              BiasKernel<Relu, 1>, BiasKernel<Relu, 4>, GatherKernel<uint8_t, 1>,
                              GatherKernel<uint8_t, 4>, GatherKernel<float, 1>, GatherKernel<float, 4>>;

using LossKernels = KernelList<MeanLossKernel<SquaredError>, MeanLossKernel<LogisticLoss>,
                               MeanLossKernel<PointLossOf<float>>, MeanLossKernel<PointLossOf<int32_t>>,
                               CountSignKernel, CountArgmaxKernel<16>, CountArgmaxKernel<32>>;

// Kernels for 2, 4, 8, 10, 16 and 32 classes and for the numbers between, in packs of four classes if
// possible.
using SoftmaxFewKernels = KernelList<SoftmaxXentFewKernel<2, 2, true>, SoftmaxXentFewKernel<4, 4, true>,
                                     SoftmaxXentFewKernel<8, 4, true>, SoftmaxXentFewKernel<10, 2, true>,
                                     SoftmaxXentFewKernel<16, 4, true>, SoftmaxXentFewKernel<32, 4, true>,
                                     SoftmaxXentFewKernel<4, 1, false>, SoftmaxXentFewKernel<8, 1, false>,
                                     SoftmaxXentFewKernel<16, 1, false>, SoftmaxXentFewKernel<16, 4, false>,
                                     SoftmaxXentFewKernel<32, 1, false>, SoftmaxXentFewKernel<32, 4, false>>;
template <int width>
using SoftmaxManyKernels =
    KernelList<SoftmaxXentKernel<8, 8, width>, SoftmaxXentKernel<16, 8, width>,
               SoftmaxXentKernel<32, 8, width>, SoftmaxXentKernel<32, 16, width>,
               SoftmaxXentKernel<32, 32, width>, SoftmaxXentKernel<kSoftmaxBlockThreads, 8, width>,
               SoftmaxXentKernel<kSoftmaxBlockThreads, 16, width>,
               SoftmaxXentKernel<kSoftmaxBlockThreads, 32, width>, SoftmaxXentLongKernel<width>>;
using SoftmaxKernels =
    decltype(Joined(SoftmaxFewKernels(), SoftmaxManyKernels<1>(), SoftmaxManyKernels<4>()));

// By the largest number of outputs; 10 is for digits and similar data.
template <int... kOutputs>
using ByteKernels = KernelList<ByteForwardKernel<kOutputs, 1>..., ByteForwardKernel<kOutputs, 4>...,
                               ByteGradientKernel<kOutputs>...>;
using LinearKernels =
    decltype(Joined(KernelList<ColumnSumsKernel>(), ByteKernels<1, 4, 10, kMaxByteOutputs>()));

using AllKernels = decltype(Joined(ActivationKernels(), ElementwiseKernels(), OptimizerKernels(),
                                   RowKernels(), LossKernels(), SoftmaxKernels(), LinearKernels()));

template <typename Body, typename... Bodies>
constexpr int PlaceOf(KernelList<Bodies...>) {
  int place = -1, at = 0;
  ((std::is_same_v<Body, Bodies> ? void(place = at++) : void(++at)), ...);
  return place;
}

template <typename Body>
constexpr Kernel KernelOf() {
  constexpr int place = PlaceOf<Body>(AllKernels());
  static_assert(place >= 0, "a kernel that is not in the list");
  return Kernel{place};
}

}  // namespace dtrain::gpu::cuda
