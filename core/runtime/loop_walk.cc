#include "core/runtime/loop_walk.h"

#include <algorithm>
#include <cstring>

#include "core/bundle/symbol_values.h"
#include "core/tensor/passes.h"

namespace fusion {

LoopWalk::LoopWalk(const Plan& plan)
    : plan_(plan), places_(PlacesOf(plan)), units_(MostUnits(plan.symbols)) {
  SetSizes(units_);
}

void LoopWalk::SetSizes(const std::vector<int64_t>& units) {
  sizes_.clear();
  for (const PlanLoop& loop : plan_.loops) {
    Sizes sizes{.most = MostPassesAt(loop, units), .carried = {}, .elements = {}};
    for (const PlanLoop::Carried& c : loop.carried) {
      const PlanTensor& last = plan_.tensors[static_cast<size_t>(c.last)];
      sizes.carried.push_back(NumElements(DimsAt(last, units)) * DTypeBytes(last.dtype));
    }
    for (const PlanLoop::Element& e : loop.elements) {
      sizes.elements.push_back(ElementBytesAt(plan_, e, units));
    }
    sizes_.push_back(std::move(sizes));
  }
  units_ = units;
}

std::byte* LoopWalk::Where(int tensor, const Steps& steps) const {
  const PlanTensor& t = plan_.tensors[static_cast<size_t>(tensor)];
  return t.space == Space::kPass ? places_[static_cast<size_t>(t.index)] : steps.where(tensor);
}

absl::Status LoopWalk::Run(const Steps& steps, const std::vector<int64_t>& units) {
  if (units != units_) SetSizes(units);
  return Range(0, static_cast<int>(plan_.launches.size()), /*loop=*/0, steps);
}

// Launches [begin, end) once; `loop` is the first that may begin among them.
absl::Status LoopWalk::Range(int begin, int end, size_t loop, const Steps& steps) {
  for (int i = begin; i < end;) {
    if (loop == plan_.loops.size() || plan_.loops[loop].first != i) {
      RETURN_IF_ERROR(steps.launch(i++));
      continue;
    }
    RETURN_IF_ERROR(Passes(loop, steps));
    i += plan_.loops[loop].launches;
    while (loop < plan_.loops.size() && plan_.loops[loop].first < i) ++loop;
  }
  return absl::OkStatus();
}

absl::Status LoopWalk::Passes(size_t l, const Steps& steps) {
  const PlanLoop& loop = plan_.loops[l];
  auto holds = [&](int tensor) { return *Where(tensor, steps) != std::byte{0}; };
  const int64_t room = sizes_[l].most;
  int64_t asked = room;
  if (loop.count >= 0) std::memcpy(&asked, Where(loop.count, steps), sizeof(asked));
  const int64_t most = std::clamp<int64_t>(asked, 0, room);
  const bool more = loop.must_end && (asked > most || loop.count < 0);
  if (more && loop.begins < 0) return MorePasses(room);
  bool goes_on = loop.begins < 0 || holds(loop.begins);
  int64_t pass = 0;
  for (; pass < most && goes_on; ++pass) {
    Begin(l, pass, most, steps);
    RETURN_IF_ERROR(Range(loop.first, loop.first + loop.launches, l + 1, steps));
    if (loop.goes_on >= 0) goes_on = holds(loop.goes_on);
  }
  if (more && goes_on) return MorePasses(room);
  End(l, pass, steps);
  return absl::OkStatus();
}

void LoopWalk::Begin(size_t l, int64_t pass, int64_t most, const Steps& steps) {
  const PlanLoop& loop = plan_.loops[l];
  const Sizes& sizes = sizes_[l];
  auto place = [&](int p) -> std::byte*& { return places_[static_cast<size_t>(p)]; };
  // The last of all passes there may be writes `last`.
  const bool to_last = (most - pass) % 2 != 0;
  for (const PlanLoop::Carried& c : loop.carried) {
    place(c.before) = pass == 0 ? Where(c.initial, steps) : place(c.after);
    place(c.after) = Where(to_last ? c.last : c.spare, steps);
  }
  for (size_t i = 0; i < loop.elements.size(); ++i) {
    const PlanLoop::Element& e = loop.elements[i];
    const int64_t at = e.from_end ? sizes.most - 1 - pass : pass;
    place(e.place) = Where(e.whole, steps) + at * sizes.elements[i];
  }
  if (loop.pass >= 0) std::memcpy(Where(loop.pass, steps), &pass, sizeof(pass));
}

void LoopWalk::End(size_t l, int64_t passes, const Steps& steps) {
  const PlanLoop& loop = plan_.loops[l];
  const Sizes& sizes = sizes_[l];
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    const PlanLoop::Carried& c = loop.carried[i];
    const std::byte* from =
        passes == 0 ? Where(c.initial, steps) : places_[static_cast<size_t>(c.after)];
    std::byte* to = Where(c.last, steps);
    const auto bytes = static_cast<size_t>(sizes.carried[i]);
    if (from != to && bytes > 0) std::memmove(to, from, bytes);
  }
  // What no pass wrote is read like the rest.
  const int64_t left = sizes.most - passes;
  for (size_t i = 0; i < loop.elements.size(); ++i) {
    const PlanLoop::Element& e = loop.elements[i];
    if (!e.written || left == 0) continue;
    std::byte* begin = Where(e.whole, steps) + (e.from_end ? 0 : passes * sizes.elements[i]);
    std::memset(begin, 0, static_cast<size_t>(left * sizes.elements[i]));
  }
  if (loop.passes >= 0) std::memcpy(Where(loop.passes, steps), &passes, sizeof(passes));
}

}  // namespace fusion
