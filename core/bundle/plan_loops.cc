#include "core/bundle/plan_loops.h"

#include <algorithm>

#include "core/bundle/symbol_values.h"

namespace fusion {
namespace {

constexpr int64_t kMostPasses = int64_t{1} << 31;  // kMaxPasses of core/op/repeat.h
// Maximum nesting of loops: execution and this check recurse as deep.
constexpr size_t kMostDepth = 64;

class LoopChecker {
 public:
  LoopChecker(const Plan& plan, const std::vector<int64_t>& units) : plan_(plan), units_(units) {}

  absl::Status Run() {
    places_ = PlacesOf(plan_);
    owner_.assign(places_, -1);
    bytes_.assign(places_, 0);
    for (size_t l = 0; l < plan_.loops.size(); ++l) {
      absl::Status sound = CheckLaunches(l);
      if (sound.ok()) sound = CheckElements(l);
      if (sound.ok()) sound = CheckPlaces(l);
      if (!sound.ok()) return Annotate(sound, StrCat("plan loop ", l));
    }
    for (size_t l = 0; l < plan_.loops.size(); ++l) {
      absl::Status sound = CheckTensors(l);
      if (!sound.ok()) return Annotate(sound, StrCat("plan loop ", l));
    }
    return CheckUses();
  }

 private:
  static int64_t End(const PlanLoop& loop) { return int64_t{loop.first} + loop.launches; }

  // The loop must lie within the innermost loop that has not ended at its first launch.
  absl::Status CheckLaunches(size_t l) {
    const PlanLoop& loop = plan_.loops[l];
    const auto launches = static_cast<int64_t>(plan_.launches.size());
    if (loop.first < 0 || loop.launches < 1 || End(loop) > launches) {
      return InvalidArgument("launches ", loop.first, "..", End(loop) - 1, " of ", launches);
    }
    if (loop.most < 0 || loop.most > kMostPasses) {
      return InvalidArgument(loop.most, " passes, expected 0..", kMostPasses);
    }
    while (!around_.empty() && End(plan_.loops[around_.back()]) <= loop.first) around_.pop_back();
    const bool inside = around_.empty() || (plan_.loops[around_.back()].first <= loop.first &&
                                            End(loop) <= End(plan_.loops[around_.back()]));
    const bool ordered = l == 0 || plan_.loops[l - 1].first <= loop.first;
    if (!inside || !ordered) {
      return InvalidArgument("launches ", loop.first, "..", End(loop) - 1,
                             "; expected them within or behind those of the loop before it");
    }
    parents_.push_back(around_.empty() ? -1 : static_cast<int>(around_.back()));
    around_.push_back(l);
    if (around_.size() <= kMostDepth) return absl::OkStatus();
    return InvalidArgument("lies in ", kMostDepth, " others, expected fewer");
  }

  absl::Status TakePlace(size_t l, int place, int64_t bytes) {
    if (place < 0 || static_cast<size_t>(place) >= places_ || bytes < 0) {
      return InvalidArgument("place ", place, " of ", places_, " for ", bytes, " bytes");
    }
    const auto at = static_cast<size_t>(place);
    if (owner_[at] >= 0) return InvalidArgument("place ", place, " is given twice");
    owner_[at] = static_cast<int>(l);
    bytes_[at] = bytes;
    return absl::OkStatus();
  }

  // The tensor of an element must have one element per pass.
  absl::Status CheckElements(size_t l) {
    const PlanLoop& loop = plan_.loops[l];
    const int64_t most = MostPassesAt(loop, units_);
    for (const PlanLoop::Element& e : loop.elements) {
      RETURN_IF_ERROR(DenseBytes(e.whole).status());
      const Dims dims = DimsAt(plan_.tensors[static_cast<size_t>(e.whole)], units_);
      if (!dims.empty() && dims[0] == most) continue;
      return InvalidArgument("tensor ", e.whole, " is ", DimsToString(dims), ", expected ", most,
                             " elements, as many as passes");
    }
    return absl::OkStatus();
  }

  absl::Status CheckPlaces(size_t l) {
    const PlanLoop& loop = plan_.loops[l];
    for (const PlanLoop::Carried& c : loop.carried) {
      ASSIGN_OR_RETURN(int64_t bytes, DenseBytes(c.last));
      RETURN_IF_ERROR(TakePlace(l, c.before, bytes));
      RETURN_IF_ERROR(TakePlace(l, c.after, bytes));
    }
    for (const PlanLoop::Element& e : loop.elements) {
      RETURN_IF_ERROR(TakePlace(l, e.place, ElementBytesAt(plan_, e, units_)));
    }
    return absl::OkStatus();
  }

  // Bytes of a tensor, which must be row-major.
  absl::StatusOr<int64_t> DenseBytes(int id) const {
    if (id < 0 || static_cast<size_t>(id) >= plan_.tensors.size()) {
      return InvalidArgument("names tensor ", id);
    }
    const PlanTensor& t = plan_.tensors[static_cast<size_t>(id)];
    const Dims dims = DimsAt(t, units_);
    const Dims strides = StridesAt(t, units_);
    int64_t elements = 1;
    bool dense = true;
    for (size_t d = dims.size(); d-- > 0;) {
      dense = dense && (dims[d] <= 1 || strides[d] == elements);
      elements *= dims[d];
    }
    if (!dense && elements > 0) return InvalidArgument("tensor ", id, " is not row-major");
    return elements * DTypeBytes(t.dtype);
  }

  bool Encloses(int outer, size_t inner) const {
    for (int l = parents_[inner]; l >= 0; l = parents_[static_cast<size_t>(l)]) {
      if (l == outer) return true;
    }
    return false;
  }

  // Checks a tensor of `bytes` bytes that the loop itself reads or writes.
  absl::Status CheckNamed(size_t l, int id, int64_t bytes, bool written) const {
    ASSIGN_OR_RETURN(int64_t has, DenseBytes(id));
    const PlanTensor& t = plan_.tensors[static_cast<size_t>(id)];
    if (has != bytes) {
      return InvalidArgument("tensor ", id, " has ", has, " bytes, expected ", bytes);
    }
    if (t.space == Space::kPass) {
      const auto place = static_cast<size_t>(t.index);
      if (place >= places_ || !Encloses(owner_[place], l)) {
        return InvalidArgument("tensor ", id, " is at a place of no loop around it");
      }
    }
    const bool writable =
        t.space == Space::kArena || t.space == Space::kOutput || t.space == Space::kPass;
    if (written && !writable) return InvalidArgument("tensor ", id, " is not its to write");
    return absl::OkStatus();
  }

  absl::Status CheckScalar(size_t l, int id, DType type, bool written) const {
    if (id == -1) return absl::OkStatus();
    RETURN_IF_ERROR(CheckNamed(l, id, DTypeBytes(type), written));
    if (plan_.tensors[static_cast<size_t>(id)].dtype == type) return absl::OkStatus();
    return InvalidArgument("tensor ", id, " is no ", DTypeName(type));
  }

  absl::Status CheckTensors(size_t l) const {
    const PlanLoop& loop = plan_.loops[l];
    RETURN_IF_ERROR(CheckScalar(l, loop.count, DType::kI64, false));
    RETURN_IF_ERROR(CheckScalar(l, loop.begins, DType::kBool, false));
    RETURN_IF_ERROR(CheckScalar(l, loop.goes_on, DType::kBool, true));
    RETURN_IF_ERROR(CheckScalar(l, loop.pass, DType::kI64, true));
    RETURN_IF_ERROR(CheckScalar(l, loop.passes, DType::kI64, true));
    for (const PlanLoop::Carried& c : loop.carried) {
      const int64_t bytes = bytes_[static_cast<size_t>(c.before)];
      RETURN_IF_ERROR(CheckNamed(l, c.initial, bytes, false));
      RETURN_IF_ERROR(CheckNamed(l, c.last, bytes, true));
      RETURN_IF_ERROR(CheckNamed(l, c.spare, bytes, true));
    }
    for (const PlanLoop::Element& e : loop.elements) {
      ASSIGN_OR_RETURN(int64_t bytes, DenseBytes(e.whole));
      RETURN_IF_ERROR(CheckNamed(l, e.whole, bytes, e.written));
    }
    return absl::OkStatus();
  }

  // Places are used only within their loop, by tensors that fit.
  absl::Status CheckUses() const {
    for (size_t i = 0; i < plan_.tensors.size(); ++i) {
      const PlanTensor& t = plan_.tensors[i];
      if (t.space != Space::kPass) continue;
      const auto place = static_cast<size_t>(t.index);
      const int64_t bytes = t.sizes.empty() ? t.bytes : ElementsAt(t, units_) * DTypeBytes(t.dtype);
      if (place < places_ && bytes <= bytes_[place]) continue;
      return InvalidArgument("plan tensor ", i, ": ", bytes, " bytes at place ", t.index);
    }
    for (const PlanLaunch& launch : plan_.prepare) RETURN_IF_ERROR(CheckLaunch(launch, -1));
    size_t next = 0;
    std::vector<size_t> around;
    for (size_t i = 0; i < plan_.launches.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      while (!around.empty() && End(plan_.loops[around.back()]) <= at) around.pop_back();
      while (next < plan_.loops.size() && plan_.loops[next].first == at) around.push_back(next++);
      RETURN_IF_ERROR(
          CheckLaunch(plan_.launches[i], around.empty() ? -1 : static_cast<int>(around.back())));
    }
    return absl::OkStatus();
  }

  // `loop`: the innermost loop around the launch; -1: none.
  absl::Status CheckLaunch(const PlanLaunch& launch, int loop) const {
    for (int id : launch.tensors) {
      const PlanTensor& t = plan_.tensors[static_cast<size_t>(id)];
      if (t.space != Space::kPass) continue;
      const int owner = owner_[static_cast<size_t>(t.index)];
      if (loop >= 0 && (owner == loop || Encloses(owner, static_cast<size_t>(loop)))) continue;
      return InvalidArgument("a plan launch uses place ", t.index, " outside of its loop");
    }
    return absl::OkStatus();
  }

  const Plan& plan_;
  const std::vector<int64_t>& units_;
  size_t places_ = 0;
  std::vector<int> owner_;      // by place: its loop
  std::vector<int64_t> bytes_;  // by place
  std::vector<int> parents_;    // by loop: the enclosing one; -1: none
  std::vector<size_t> around_;  // the loop checked last and those around it, outermost first
};

}  // namespace

absl::Status CheckLoops(const Plan& plan, const std::vector<int64_t>& units) {
  return LoopChecker(plan, units).Run();
}

}  // namespace fusion
