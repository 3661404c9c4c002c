#include "core/base/text/text.h"
#include "core/codegen/cpu/prelude_parts.h"

namespace fusion {
namespace {

constexpr std::string_view kGuardTypes = R"(
// What a pointer may reach: `elements` from its start on.
struct Bounds {
  FusionKernelFault* fault;
  const char* name;
  int tensor;
  i64 elements;
};
static __attribute__((noinline, cold)) void note_fault(const Bounds& b, int code, i64 element, i64 count,
                                                       i64 elements) {
  FusionKernelFault* f = b.fault;
  if (f->code != FUSION_KERNEL_OK) return;  // the first one counts
  f->code = code;
  f->tensor = b.tensor;
  f->element = element;
  f->count = count;
  f->elements = elements;
  f->name = b.name;
}
template <class T>
struct Guarded {
  T* start;
  const Bounds* bounds;
  i64 at;
  // Whether elements first..first + count - 1 from here may be touched.
  inline bool holds(i64 first, i64 count) const {
    const i64 begin = at + first;
    if (count <= 0 || (begin >= 0 && begin <= bounds->elements - count)) return true;
    note_fault(*bounds, FUSION_KERNEL_OUT_OF_BOUNDS, begin, count, bounds->elements);
    return false;
  }
  inline T* plain() const { return start + at; }
  inline T& operator[](i64 i) const {
    if (holds(i, 1)) return start[at + i];
    __builtin_memset(bounds->fault->aside, 0, sizeof(T));
    return *(T*)bounds->fault->aside;
  }
  inline T& operator*() const { return (*this)[0]; }
  inline Guarded operator+(i64 n) const { return {start, bounds, at + n}; }
  inline Guarded operator-(i64 n) const { return {start, bounds, at - n}; }
  inline void operator+=(i64 n) { at += n; }
  inline operator Guarded<const T>() const { return {start, bounds, at}; }
};
// Both ends of `n` elements, `stride` apart.
template <class T>
AI bool holds_ends(Guarded<T> p, i64 stride, i64 n) {
  return n <= 0 || (p.holds(0, 1) && p.holds((n - 1) * stride, 1));
}
// The place that an index from the end or from the start means, the nearest one if there is none.
AI i64 index_within(const Bounds& b, i64 extent, i64 index) {
  const i64 place = index < 0 ? index + extent : index;
  if (place < 0 || place >= extent) note_fault(b, FUSION_KERNEL_BAD_INDEX, index, 1, extent);
  return max_i64(0, min_i64(extent - 1, place));
}
)";

constexpr std::string_view kGuardMemory = R"(
AI $V load_$N(Guarded<const $T> p) { return p.holds(0, W) ? load_$N(p.plain()) : ($V){}; }
AI $V loadn_$N(Guarded<const $T> p, i64 n) { return p.holds(0, n) ? loadn_$N(p.plain(), n) : ($V){}; }
AI $V loads_$N(Guarded<const $T> p, i64 stride, i64 n) {
  return holds_ends(p, stride, n) ? loads_$N(p.plain(), stride, n) : ($V){};
}
AI void store_$N(Guarded<$T> p, $V v) {
  if (p.holds(0, W)) store_$N(p.plain(), v);
}
AI void storen_$N(Guarded<$T> p, $V v, i64 n) {
  if (p.holds(0, n)) storen_$N(p.plain(), v, n);
}
AI void stores_$N(Guarded<$T> p, i64 stride, $V v, i64 n) {
  if (holds_ends(p, stride, n)) stores_$N(p.plain(), stride, v, n);
}
)";

constexpr std::string_view kGuardMemoryHalf = R"(
AI vf load_$N(Guarded<const $T> p) { return p.holds(0, W) ? load_$N(p.plain()) : (vf){}; }
AI vf loadn_$N(Guarded<const $T> p, i64 n) { return p.holds(0, n) ? loadn_$N(p.plain(), n) : (vf){}; }
AI vf loads_$N(Guarded<const $T> p, i64 stride, i64 n) {
  return holds_ends(p, stride, n) ? loads_$N(p.plain(), stride, n) : (vf){};
}
AI vf splat_$N(Guarded<const $T> p) { return p.holds(0, 1) ? splat_$N(p.plain()) : (vf){}; }
AI void store_$N(Guarded<$T> p, vf v) {
  if (p.holds(0, W)) store_$N(p.plain(), v);
}
AI void storen_$N(Guarded<$T> p, vf v, i64 n) {
  if (p.holds(0, n)) storen_$N(p.plain(), v, n);
}
AI void stores_$N(Guarded<$T> p, i64 stride, vf v, i64 n) {
  if (holds_ends(p, stride, n)) stores_$N(p.plain(), stride, v, n);
}
)";

}  // namespace

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (;;) {
    const size_t at = text.find(from);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += to;
    text.remove_prefix(at + from.size());
  }
}

std::string_view GuardTypes() { return kGuardTypes; }

std::string_view GuardMemory(bool half) { return half ? kGuardMemoryHalf : kGuardMemory; }

std::string GuardedProduct(std::string_view plain) {
  std::string out(plain);
  for (std::string_view type : {"typename F::A", "typename F::B"}) {
    out =
        Replaced(out, StrCat("const ", type, "* __restrict"), StrCat("Guarded<const ", type, ">"));
  }
  return Replaced(out, "typename F::C* __restrict", "Guarded<typename F::C>");
}

}  // namespace fusion
