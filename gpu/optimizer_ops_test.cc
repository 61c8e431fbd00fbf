#include "gpu/optimizer_ops.h"

#include <doctest/doctest.h>

#include <hwy/targets.h>
#include <cstring>
#include <functional>
#include <string>

#include "gpu/ref/optimizer_ref.h"
#include "gpu/testing/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

constexpr int64_t kSizes[] = {0, 1, 31, 33, 1000};

// An optimizer, on floats and on doubles, with its slots as they are after a while.
struct Kind {
  std::string name;
  int slots = 0;
  std::function<void(Stream&, const Update&, Span<float>*)> step;
  std::function<void(const ref::Update&, Span<double>*)> oracle;
};

std::vector<Kind> Kinds() {
  const MomentumRule plain = {0.1f, 0.9f, false}, nesterov = {0.1f, 0.9f, true};
  const AdagradRule adagrad = {0.1f, 1e-8f};
  const RmspropRule rmsprop = {0.1f, 0.9f, 0.1f, 1e-8f};
  const AdamRule adam = {0.2f, 0.9f, 0.1f, 0.999f, 0.001f, 9.0f, 1e-8f};
  const FtrlRule ftrl = {10.0f, 5.0f, 0.5f, 0.3f, 0.2f};
  return {
      {"sgd", 0, [](auto& s, auto& u, auto*) { SgdStep(s, u, 0.1f); },
       [](auto& u, auto*) { ref::SgdStep(u, 0.1f); }},
      {"momentum", 1, [=](auto& s, auto& u, auto* slots) { MomentumStep(s, u, plain, slots[0]); },
       [=](auto& u, auto* slots) { ref::MomentumStep(u, plain, slots[0]); }},
      {"nesterov", 1, [=](auto& s, auto& u, auto* slots) { MomentumStep(s, u, nesterov, slots[0]); },
       [=](auto& u, auto* slots) { ref::MomentumStep(u, nesterov, slots[0]); }},
      {"adagrad", 1, [=](auto& s, auto& u, auto* slots) { AdagradStep(s, u, adagrad, slots[0]); },
       [=](auto& u, auto* slots) { ref::AdagradStep(u, adagrad, slots[0]); }},
      {"rmsprop", 1, [=](auto& s, auto& u, auto* slots) { RmspropStep(s, u, rmsprop, slots[0]); },
       [=](auto& u, auto* slots) { ref::RmspropStep(u, rmsprop, slots[0]); }},
      {"adam", 2, [=](auto& s, auto& u, auto* slots) { AdamStep(s, u, adam, slots[0], slots[1]); },
       [=](auto& u, auto* slots) { ref::AdamStep(u, adam, slots[0], slots[1]); }},
      {"ftrl", 2, [=](auto& s, auto& u, auto* slots) { FtrlStep(s, u, ftrl, slots[0], slots[1]); },
       [=](auto& u, auto* slots) { ref::FtrlStep(u, ftrl, slots[0], slots[1]); }},
  };
}

// Positive, as the sums of squares among the slots are.
std::vector<float> SlotValues(int64_t n, int slot) {
  std::vector<float> values = Normals(n, "slot " + std::to_string(slot));
  for (float& value : values) value = std::abs(value) + 0.125f;
  return values;
}

Update Plain() { return Update(); }
Update Shaped() {
  Update update;
  update.scale = 0.5f;
  update.clip_value = 0.4f;
  update.l1 = 0.0625f;
  update.l2 = 0.25f;
  return update;
}

// The same floats, starting `shift` bytes into the returned memory.
std::vector<std::byte> Shifted(const std::vector<float>& values, size_t shift) {
  std::vector<std::byte> bytes(shift + values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(bytes.data() + shift, values.data(), values.size() * sizeof(float));
  return bytes;
}

// Weights and slots after some updates of elements [0, n), made range by range.
struct State {
  explicit State(int64_t n) : weights(Normals(n, "w")), slots{SlotValues(n, 0), SlotValues(n, 1)} {}
  bool operator==(const State& other) const {
    return weights == other.weights && slots[0] == other.slots[0] && slots[1] == other.slots[1];
  }
  std::vector<float> weights;
  std::vector<float> slots[2];
};

enum class Where { kInPlace, kFresh };

// One update of elements [begin, end); `frame` holds the whole gradient from byte `shift` on.
void StepRange(const Kind& kind, Update update, const std::byte* gradient, int64_t begin, int64_t end,
               Where where, State* state) {
  Stream stream;
  std::vector<float> fresh(static_cast<size_t>(end - begin));
  float* const weights = state->weights.data() + begin;
  update.weights = {weights, end - begin};
  update.gradient = gradient + begin * static_cast<int64_t>(sizeof(float));
  update.updated = {where == Where::kFresh ? fresh.data() : weights, end - begin};
  Span<float> slots[] = {{state->slots[0].data() + begin, end - begin},
                         {state->slots[1].data() + begin, end - begin}};
  kind.step(stream, update, slots);
  if (where == Where::kFresh) std::copy(fresh.begin(), fresh.end(), weights);
}

TEST_CASE("optimizer steps: agree with ref over odd sizes and leave the neighbours alone") {
  Stream stream;
  for (const Kind& kind : Kinds()) {
    for (const Update& shaping : {Plain(), Shaped()}) {
      for (const int64_t n : kSizes) {
        CAPTURE(kind.name);
        CAPTURE(n);
        const std::vector<float> weights = Normals(n, "w"), gradient = Normals(n, "g");
        const std::vector<std::byte> frame = Shifted(gradient, 1);
        Place processor;
        Array<float> updated(processor, n), first(processor, SlotValues(n, 0)),
            second(processor, SlotValues(n, 1));
        Span<float> slots[] = {first.span(), second.span()};
        std::vector<double> expected(n), expected_slots[2];
        Span<double> oracle_slots[2];
        for (int s = 0; s < 2; ++s) {
          expected_slots[s] = Doubles(SlotValues(n, s));
          oracle_slots[s] = expected_slots[s];
        }
        Update update = shaping;
        update.weights = weights;
        update.gradient = frame.data() + 1;
        update.updated = updated.span();
        kind.step(stream, update, slots);
        const std::vector<double> weights64 = Doubles(weights), gradient64 = Doubles(gradient);
        kind.oracle({weights64, gradient64, expected, shaping}, oracle_slots);
        // Up to eight roundings of 2^-24 each. ftrl's terms are up to 40 before they cancel: 2^-24 of them.
        const double tolerance = kind.name == "ftrl" ? 0x1p-18 : 0x1p-21;
        CHECK(LargestError(updated.span(), expected, 1) <= tolerance);
        for (int s = 0; s < kind.slots; ++s) {
          CHECK(LargestError(slots[s], expected_slots[s], 1) <= tolerance);
        }
        CHECK(updated.GuardsIntact());
        CHECK(first.GuardsIntact());
        CHECK(second.GuardsIntact());
      }
    }
  }
}

TEST_CASE("optimizer steps: the same bits for any cut, buffer and address of the gradient") {
  const int64_t n = 71;
  for (const Kind& kind : Kinds()) {
    for (const Update& shaping : {Plain(), Shaped()}) {
      CAPTURE(kind.name);
      for (int64_t cut = 0; cut <= n; ++cut) {
        State whole(n), parts(n);
        for (const char* step : {"1", "2", "3"}) {
          const std::vector<float> gradient = Normals(n, step);
          const size_t shift = static_cast<size_t>(cut) % 8;
          const std::vector<std::byte> frame = Shifted(gradient, shift), aligned = Shifted(gradient, 0);
          StepRange(kind, shaping, aligned.data(), 0, n, Where::kInPlace, &whole);
          StepRange(kind, shaping, frame.data() + shift, 0, cut, Where::kFresh, &parts);
          StepRange(kind, shaping, frame.data() + shift, cut, n, Where::kInPlace, &parts);
        }
        CHECK(parts == whole);
      }
    }
  }
}

// Three updates of a range by a place's operations, from the bits that State begins with.
State StateAt(Place& place, const Kind& kind, const Update& shaping, int64_t n, int64_t shift, Where where) {
  const State start(n);
  Array<float> weights(place, start.weights, shift), fresh(place, n, shift),
      first(place, start.slots[0], shift), second(place, start.slots[1], shift);
  for (const char* step : {"1", "2", "3"}) {
    Array<float> gradient(place, Normals(n, step), step[0] == '2' ? shift + 1 : shift);
    Update update = shaping;
    update.weights = weights.span();
    update.gradient = reinterpret_cast<const std::byte*>(gradient.data());
    update.updated = where == Where::kFresh && step[0] == '3' ? fresh.span() : weights.span();
    Span<float> slots[] = {first.span(), second.span()};
    kind.step(place.stream(), update, slots);
  }
  CHECK(weights.GuardsIntact());
  CHECK(fresh.GuardsIntact());
  CHECK(first.GuardsIntact());
  CHECK(second.GuardsIntact());
  State end(0);
  end.weights = where == Where::kFresh ? fresh.Read() : weights.Read();
  end.slots[0] = first.Read();
  end.slots[1] = second.Read();
  return end;
}

TEST_CASE("optimizer steps: the same bits everywhere") {
  Place processor;
  for (const Kind& kind : Kinds()) {
    for (const Update& shaping : {Plain(), Shaped()}) {
      CAPTURE(kind.name);
      for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{31}, int64_t{33}, int64_t{1000}, kManyBlocks}) {
        CAPTURE(n);
        const State expected = StateAt(processor, kind, shaping, n, 0, Where::kInPlace);
        for (Place* place : Places()) {
          CAPTURE(place->name());
          CHECK(StateAt(*place, kind, shaping, n, n % 4, Where::kInPlace) == expected);
          if (n < kManyBlocks) CHECK(StateAt(*place, kind, shaping, n, 2, Where::kFresh) == expected);
        }
      }
    }
  }
}

TEST_CASE("optimizer steps: on a device, too, what is not a number stays so, and infinities are cut") {
  const std::vector<float> bad = {std::nanf(""), HUGE_VALF, -HUGE_VALF, 3};
  for (Place* place : Places()) {
    Array<float> weights(*place, {0, 0, 0, 0}), gradient(*place, bad);
    Update update;
    update.weights = weights.span();
    update.gradient = reinterpret_cast<const std::byte*>(gradient.data());
    update.updated = weights.span();
    update.clip_value = 0.5f;
    SgdStep(place->stream(), update, 1);
    const std::vector<float> updated = weights.Read();
    CHECK(std::isnan(updated[0]));
    CHECK(std::vector<float>(updated.begin() + 1, updated.end()) == std::vector<float>{-0.5f, 0.5f, -0.5f});
  }
}

// Every state after three updates, by the instructions that `targets` leaves to choose from.
std::vector<State> StatesWith(int64_t targets) {
  UseInstructions(targets);
  std::vector<State> states;
  for (const Kind& kind : Kinds()) {
    for (const Update& shaping : {Plain(), Shaped()}) {
      State& state = states.emplace_back(103);
      for (const char* step : {"1", "2", "3"}) {
        StepRange(kind, shaping, Shifted(Normals(103, step), 0).data(), 0, 103, Where::kInPlace, &state);
      }
    }
  }
  return states;
}

TEST_CASE("optimizer steps: the same bits with every instruction set that this processor has") {
  const int64_t all = hwy::SupportedTargets();
  const std::vector<State> expected = StatesWith(all);
  int tried = 0;
  for (int64_t left = all; left != 0; left &= left - 1) {  // the lowest bit is the best of them
    CAPTURE(hwy::TargetName(left & -left));
    CHECK(StatesWith(left) == expected);
    ++tried;
  }
  CHECK(tried >= 1);
  StatesWith(0);  // as it was: no limit
}

TEST_CASE("optimizer steps: a shaping that changes nothing gives the bits of none") {
  const int64_t n = 33;
  for (const Kind& kind : Kinds()) {
    CAPTURE(kind.name);
    Update neutral;
    neutral.clip_value = 1e30f;
    State plain(n), shaped(n);
    const std::vector<std::byte> gradient = Shifted(Normals(n, "g"), 0);
    StepRange(kind, Plain(), gradient.data(), 0, n, Where::kInPlace, &plain);
    StepRange(kind, neutral, gradient.data(), 0, n, Where::kInPlace, &shaped);
    CHECK(shaped == plain);
  }
}

TEST_CASE("optimizer steps: a slope that is not a number shows in the weight, also when it is clipped") {
  for (const Kind& kind : Kinds()) {
    for (const Update& shaping : {Plain(), Shaped()}) {
      CAPTURE(kind.name);
      State state(5);
      std::vector<float> gradient = Normals(5, "g");
      gradient[3] = std::nanf("");
      StepRange(kind, shaping, Shifted(gradient, 0).data(), 0, 5, Where::kInPlace, &state);
      for (size_t i = 0; i < 5; ++i) CHECK(std::isnan(state.weights[i]) == (i == 3));
    }
  }
}

TEST_CASE("sgd step: two roundings per element, those of the plain loop") {
  Stream stream;
  const std::vector<float> weights = Normals(1001, "w"), gradient = Normals(1001, "g");
  const std::vector<std::byte> frame = Shifted(gradient, 0);
  std::vector<float> updated(1001);
  Update update;
  update.weights = weights;
  update.gradient = frame.data();
  update.updated = updated;
  SgdStep(stream, update, 0.03f);
  for (size_t i = 0; i < weights.size(); ++i) {
    const float step = 0.03f * gradient[i];
    CHECK(updated[i] == weights[i] - step);
  }
}

TEST_CASE("gradient clipping: values beyond the limit, infinite ones too, become the limit") {
  Stream stream;
  const std::vector<float> weights(4, 0.0f);
  const std::vector<std::byte> frame = Shifted({3, -HUGE_VALF, 0.25f, -0.5f}, 0);
  std::vector<float> updated(4);
  Update update;
  update.weights = weights;
  update.gradient = frame.data();
  update.updated = updated;
  update.clip_value = 0.5f;
  SgdStep(stream, update, 1);
  CHECK(updated == std::vector<float>{-0.5f, 0.5f, -0.25f, 0.5f});
}

TEST_CASE("l1: a weight of zero is not moved") {
  Stream stream;
  const std::vector<float> weights = {0, -0.0f, 1, -1};
  const std::vector<std::byte> frame = Shifted({0, 0, 0, 0}, 0);
  std::vector<float> updated(4);
  Update update;
  update.weights = weights;
  update.gradient = frame.data();
  update.updated = updated;
  update.l1 = 0.25f;
  SgdStep(stream, update, 1);
  CHECK(updated == std::vector<float>{0, 0, 0.75f, -0.75f});
}

TEST_CASE("ftrl: without l1, l2 and beta an update is one of adagrad, also from weights that are not zero") {
  Stream stream;
  State ftrl(33), adagrad(33);
  ftrl.slots[1] = adagrad.slots[0] = std::vector<float>(33, 0.1f);
  ftrl.slots[0] = std::vector<float>(33, 0.0f);
  float inverse_before = 0;
  for (const float rate : {0.05f, 0.1f, 0.02f}) {  // the rate may go up and down
    const std::vector<std::byte> gradient = Shifted(Normals(33, std::to_string(rate)), 0);
    Update update;
    update.gradient = gradient.data();
    update.weights = ftrl.weights;
    update.updated = ftrl.weights;
    FtrlStep(stream, update, {1 / rate, inverse_before, 0, 0, 0}, ftrl.slots[0], ftrl.slots[1]);
    inverse_before = 1 / rate;
    update.weights = adagrad.weights;
    update.updated = adagrad.weights;
    AdagradStep(stream, update, {rate, 0}, adagrad.slots[0]);
  }
  // z is a weight times up to 200: 2^-24 of it in each of three updates.
  CHECK(LargestError(ftrl.weights, Doubles(adagrad.weights), 1) <= 0x1p-20);
}

TEST_CASE("ftrl: a weight whose slopes stay below l1 is exactly zero") {
  Stream stream;
  std::vector<float> weights = {0, 0}, z = {0, 0}, n = {0, 0};
  const std::vector<std::byte> gradient = Shifted({0.25f, 0}, 0);
  Update update;
  update.gradient = gradient.data();
  update.weights = weights;
  update.updated = weights;
  for (int step = 0; step < 3; ++step) {
    FtrlStep(stream, update, {10, step == 0 ? 0.0f : 10.0f, 0, 1, 0}, z, n);
    CHECK(weights == std::vector<float>{0, 0});
  }
}

}  // namespace
}  // namespace dtrain::gpu
