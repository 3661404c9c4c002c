#include "core/codegen/cpu/prelude_parts.h"

namespace fusion {
namespace {

// Running folds: how two values of one type become one.
constexpr std::string_view kRunningFold = R"(
template <class T>
struct FoldWrap {  // integers wrap as unsigned ones do
  typedef T type;
};
template <>
struct FoldWrap<int> {
  typedef unsigned int type;
};
template <>
struct FoldWrap<i64> {
  typedef u64 type;
};
template <class T>
struct FoldSum {
  typedef typename FoldWrap<T>::type U;
  static T identity() { return 0; }
  static T of(T a, T b) { return (T)((U)a + (U)b); }
};
template <class T>
struct FoldProd {
  typedef typename FoldWrap<T>::type U;
  static T identity() { return 1; }
  static T of(T a, T b) { return (T)((U)a * (U)b); }
};
template <class T>
struct FoldMax {
  static T of(T a, T b) { return a != a || b != b ? a + b : a > b ? a : b; }
};
template <class T>
struct FoldMin {
  static T of(T a, T b) { return a != a || b != b ? a + b : a < b ? a : b; }
};
// One row, element n of which lies at n * step: y[n] = the fold of x[0] .. x[n], begun with `state`,
// which is what comes before. Returns the fold of all. `Exclusive`: without x[n].
template <class F, bool Exclusive, class T>
static T fold_row(const T* x, T* y, i64 extent, i64 step, T state) {
  for (i64 n = 0; n < extent; ++n) {
    const T before = state;
    state = F::of(state, x[n * step]);
    y[n * step] = Exclusive ? before : state;
  }
  return state;
}
// Rows that lie next to each other, of which `rows` are folded: each from what stands in y before it.
template <class F, bool Exclusive, class T>
static void fold_rows_beside(const T* x, T* y, i64 extent, i64 rows, i64 step, T identity) {
  constexpr i64 kLanes = 16;
  for (i64 r = 0; extent > 0 && r < rows; ++r) y[r] = Exclusive ? identity : F::of(identity, x[r]);
  for (i64 n = 1; n < extent; ++n) {
    const T* __restrict__ before = y + (n - 1) * step;
    const T* __restrict__ next = x + (Exclusive ? n - 1 : n) * step;
    T* __restrict__ to = y + n * step;
    i64 r = 0;
    for (; r + kLanes <= rows; r += kLanes) {
      for (i64 l = 0; l < kLanes; ++l) to[r + l] = F::of(before[r + l], next[r + l]);
    }
    for (; r < rows; ++r) to[r] = F::of(before[r], next[r]);
  }
}
// Rows [o_begin, o_end) x [i_begin, i_end) of x [outer, extent, inner]. `Reverse`: from the end.
template <class F, bool Exclusive, bool Reverse, class T>
static void fold_rows(const T* x, T* y, i64 extent, i64 inner, i64 o_begin, i64 o_end, i64 i_begin, i64 i_end,
                      T identity) {
  const i64 step = Reverse ? -inner : inner;
  for (i64 o = o_begin; o < o_end; ++o) {
    const i64 first = o * extent * inner + (Reverse ? (extent - 1) * inner : 0);
    if (inner == 1) {
      fold_row<F, Exclusive>(x + first, y + first, extent, step, identity);
    } else {
      // As many as stay in a cache from one element to the next.
      for (i64 i = i_begin; i < i_end; i += 2048) {
        fold_rows_beside<F, Exclusive>(x + first + i, y + first + i, extent, min_i64(2048, i_end - i), step, identity);
      }
    }
  }
}
// Block `block` of `blocks` of a row, in the order in which it is folded.
AI i64 fold_begin(i64 extent, i64 blocks, i64 block) { return extent / blocks * block + min_i64(extent % blocks, block); }
// The fold of each of `blocks` parts of a row: what comes before a part is the fold of those before it.
template <class F, bool Reverse, class T>
static void fold_totals(const T* x, T* totals, i64 extent, i64 blocks, i64 block, T identity) {
  const i64 begin = fold_begin(extent, blocks, block);
  const i64 end = fold_begin(extent, blocks, block + 1);
  T state = identity;
  for (i64 n = begin; n < end; ++n) state = F::of(state, x[Reverse ? extent - 1 - n : n]);
  totals[block] = state;
}
template <class F, bool Exclusive, bool Reverse, class T>
static void fold_block(const T* x, T* y, const T* totals, i64 extent, i64 blocks, i64 block, T identity) {
  T state = identity;
  for (i64 b = 0; b < block; ++b) state = F::of(state, totals[b]);
  const i64 begin = fold_begin(extent, blocks, block);
  const i64 count = fold_begin(extent, blocks, block + 1) - begin;
  const i64 first = Reverse ? extent - 1 - begin : begin;
  fold_row<F, Exclusive>(x + first, y + first, count, Reverse ? -1 : 1, state);
}
)";

// Sums of f32 in any order: prefixes within a vector, in as many steps as its lanes double.
constexpr std::string_view kRunningSumF32 = R"(
template <int K>
AI vf lanes_before(vf v) {
#define BEFORE(i) ((i) < K ? (i) : W + (i) - K)
#define FOUR(i) BEFORE(i), BEFORE(i + 1), BEFORE(i + 2), BEFORE(i + 3)
  if constexpr (W == 16) {
    return __builtin_shufflevector((vf){}, v, FOUR(0), FOUR(4), FOUR(8), FOUR(12));
  } else if constexpr (W == 8) {
    return __builtin_shufflevector((vf){}, v, FOUR(0), FOUR(4));
  } else {
    return __builtin_shufflevector((vf){}, v, FOUR(0));
  }
#undef FOUR
#undef BEFORE
}
AI vf running_sums(vf v) {
  v += lanes_before<1>(v);
  v += lanes_before<2>(v);
  if constexpr (W > 4) v += lanes_before<4>(v);
  if constexpr (W > 8) v += lanes_before<8>(v);
  return v;
}
template <>
float fold_row<FoldSum<float>, false, float>(const float* x, float* y, i64 extent, i64 step, float state) {
  i64 n = 0;
  if (step == 1) {
    for (; n + W <= extent; n += W) {
      const vf sums = running_sums(load_f32(x + n)) + splat(state);
      store_f32(y + n, sums);
      state = sums[W - 1];
    }
  }
  for (; n < extent; ++n) {
    state += x[n * step];
    y[n * step] = state;
  }
  return state;
}
)";

// Sorting in place: quicksort, short runs by insertion, and by a heap where pivots turn out badly,
// so that no data take more than n log n steps.
constexpr std::string_view kSort = R"(
template <class E, class L>
static void sort_heap(E* a, i64 n, L before) {
  auto sink = [&](i64 root, i64 end) {
    const E held = a[root];
    for (i64 child = 2 * root + 1; child < end; child = 2 * root + 1) {
      if (child + 1 < end && before(a[child], a[child + 1])) ++child;
      if (!before(held, a[child])) break;
      a[root] = a[child];
      root = child;
    }
    a[root] = held;
  };
  for (i64 i = n / 2; i-- > 0;) sink(i, n);
  for (i64 end = n; end-- > 1;) {
    const E last = a[end];
    a[end] = a[0];
    a[0] = last;
    sink(0, end);
  }
}
// Moves what comes before the median of three to the front; returns how many that are.
template <class E, class L>
AI i64 part_by_pivot(E* a, i64 n, L before) {
  const E x = a[0], y = a[n / 2], z = a[n - 1];
  const E pivot = before(x, y) ? (before(y, z) ? y : before(x, z) ? z : x)
                               : (before(x, z) ? x : before(y, z) ? z : y);
  i64 low = 0, high = n - 1;
  for (;;) {
    while (before(a[low], pivot)) ++low;
    while (before(pivot, a[high])) --high;
    if (low >= high) return low;
    const E swap = a[low];
    a[low++] = a[high];
    a[high--] = swap;
  }
}
template <class E, class L>
static void sort_run(E* a, i64 n, i64 depth, L before) {
  while (n > 24) {
    if (depth-- == 0) return sort_heap(a, n, before);
    const i64 first = part_by_pivot(a, n, before);
    if (first < n - first) {
      sort_run(a, first, depth, before);
      a += first;
      n -= first;
    } else {
      sort_run(a + first, n - first, depth, before);
      n = first;
    }
  }
  for (i64 i = 1; i < n; ++i) {
    const E held = a[i];
    i64 at = i;
    for (; at > 0 && before(held, a[at - 1]); --at) a[at] = a[at - 1];
    a[at] = held;
  }
}
AI i64 sort_depth(i64 n) {
  i64 depth = 2;
  for (; n > 1; n /= 2) depth += 2;
  return depth;
}
template <class E, class L>
static void sort_all(E* a, i64 n, L before) {
  sort_run(a, n, sort_depth(n), before);
}
// Moves the first `k` of n elements, in any order, to the front.
template <class E, class L>
static void select_first(E* a, i64 n, i64 k, L before) {
  i64 depth = sort_depth(n);
  while (n > 24 && k > 0 && k < n) {
    if (depth-- == 0) return sort_heap(a, n, before);
    const i64 first = part_by_pivot(a, n, before);
    if (first >= k) {
      n = first;
    } else {
      a += first;
      n -= first;
      k -= first;
    }
  }
  if (k > 0 && k < n) sort_run(a, n, 64, before);
}
)";

// The order of rows. Keys are whole numbers in the order of the elements, NaN last, -0 as 0.
constexpr std::string_view kRowOrder = R"(
AI unsigned int order_key(float x) {
  if (x != x) return 0xffffffffu;
  x += 0.0f;
  unsigned int bits;
  __builtin_memcpy(&bits, &x, 4);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
AI u64 order_key(double x) {
  if (x != x) return ~0ull;
  x += 0.0;
  u64 bits;
  __builtin_memcpy(&bits, &x, 8);
  return (bits >> 63) != 0 ? ~bits : bits | (1ull << 63);
}
AI unsigned int order_key(int x) { return (unsigned int)x ^ 0x80000000u; }
AI unsigned int order_key(unsigned int x) { return x; }
AI u64 order_key(i64 x) { return (u64)x ^ (1ull << 63); }
AI u64 order_key(u64 x) { return x; }
struct Ranked {  // of 64-bit elements
  u64 key;
  i64 place;
};
struct RankedBefore {
  bool operator()(const Ranked& a, const Ranked& b) const {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
  bool operator()(u64 a, u64 b) const { return a < b; }
};
AI u64 ranked(unsigned int key, i64 place) { return ((u64)key << 32) | (u64)place; }
AI Ranked ranked(u64 key, i64 place) { return {key, place}; }
AI i64 place_of(u64 r) { return (i64)(r & 0xffffffffull); }
AI i64 place_of(const Ranked& r) { return r.place; }
// Whether one of 16 elements may come before `last`. One that is NaN may, and any before NaN.
template <bool Largest, class T>
AI bool any_before(const T* x, T last) {
  bool any = false;
  for (i64 i = 0; i < 16; ++i) any |= Largest ? !(x[i] <= last) : !(x[i] >= last);
  return any;
}
// The first `count` of a row of `extent`; `room` holds `capacity` of them: more than `count`, or all.
template <bool Largest, class E, class T>
static void order_row(const T* x, i64* y, i64 extent, i64 step, i64 count, E* room, i64 capacity) {
  const RankedBefore before;
  const auto element = [&](i64 n) {
    const auto key = order_key(x[n * step]);
    return ranked((decltype(key))(Largest ? ~key : key), n);
  };
  i64 held = 0;
  i64 n = 0;
  for (; n < extent && held < capacity; ++n) room[held++] = element(n);
  while (n < extent) {
    // What comes behind the first `count` so far is none of them.
    select_first(room, held, count, before);
    E last = room[0];
    for (i64 i = 1; i < count; ++i) last = before(last, room[i]) ? room[i] : last;
    held = count;
    const T value = x[place_of(last) * step];
    while (n < extent && held < capacity) {
      if (step == 1 && n + 16 <= extent && !any_before<Largest>(x + n, value)) {
        n += 16;
        continue;
      }
      const i64 end = min_i64(min_i64(extent, n + 16), n + capacity - held);
      for (; n < end; ++n) {
        const E next = element(n);
        room[held] = next;
        held += before(next, last) ? 1 : 0;
      }
    }
  }
  select_first(room, held, count, before);
  sort_all(room, min_i64(held, count), before);
  for (i64 k = 0; k < count; ++k) y[k * step] = place_of(room[k]);
}
// Rows [o_begin, o_end) x [i_begin, i_end) of x [outer, extent, inner].
template <bool Largest, class E, class T>
static void order_rows(const T* x, i64* y, i64 extent, i64 inner, i64 count, i64 o_begin, i64 o_end, i64 i_begin,
                       i64 i_end, E* room, i64 capacity) {
  for (i64 o = o_begin; o < o_end; ++o) {
    for (i64 i = i_begin; i < i_end; ++i) {
      order_row<Largest>(x + (o * extent * inner + i), y + (o * count * inner + i), extent, inner, count, room,
                         capacity);
    }
  }
}
// Rows of a matrix [extent, width], compared element by element.
template <bool Largest, class T>
static void order_things(const T* x, i64* y, i64 extent, i64 width, i64 count, i64* room) {
  for (i64 n = 0; n < extent; ++n) room[n] = n;
  auto before = [&](i64 a, i64 b) {
    for (i64 e = 0; e < width; ++e) {
      const auto p = order_key(x[a * width + e]);
      const auto q = order_key(x[b * width + e]);
      if (p != q) return Largest ? p > q : p < q;
    }
    return a < b;
  };
  select_first(room, extent, count, before);
  sort_all(room, count, before);
  for (i64 k = 0; k < count; ++k) y[k] = room[k];
}
)";

constexpr std::string_view kChosenPlaces = R"(
template <class T>
static void chosen_places(const T* x, i64* y, i64 n) {
  i64 found = 0;
  for (i64 i = 0; i < n; ++i) {
    y[found] = i;
    found += x[i] != 0 ? 1 : 0;
  }
  const i64 last = found == 0 ? 0 : y[found - 1];
  for (; found < n; ++found) y[found] = last;
}
)";

// Boxes: every operation is rounded to f32, none is fused with another, so that all machines choose
// alike.
constexpr std::string_view kBoxChoice = R"(
AI float in_f32(float x) {
  __asm__("" : "+x"(x));
  return x;
}
struct Box2d {
  float top, left, bottom, right, area;
};
AI float low(float a, float b) { return b < a ? b : a; }
AI float high(float a, float b) { return a < b ? b : a; }
template <bool Centred>
AI Box2d box_from(const float* p) {
  Box2d b;
  if (Centred) {
    const float half_width = in_f32(p[2] * 0.5f);
    const float half_height = in_f32(p[3] * 0.5f);
    b = {p[1] - half_height, p[0] - half_width, p[1] + half_height, p[0] + half_width, 0};
  } else {
    b = {low(p[0], p[2]), low(p[1], p[3]), high(p[0], p[2]), high(p[1], p[3]), 0};
  }
  const float height = in_f32(in_f32(b.bottom) - in_f32(b.top));
  const float width = in_f32(in_f32(b.right) - in_f32(b.left));
  b.area = in_f32(height * width);
  return b;
}
AI bool overlaps(const Box2d& a, const Box2d& b, float part) {
  const float height = high(in_f32(low(a.bottom, b.bottom) - high(a.top, b.top)), 0.0f);
  const float width = high(in_f32(low(a.right, b.right) - high(a.left, b.left)), 0.0f);
  const float common = in_f32(height * width);
  if (!(common > 0)) return false;
  const float both = in_f32(a.area + b.area);
  const float together = in_f32(both - common);
  return in_f32(common / together) > part;
}
// One batch and class: `limit` null: every number counts.
template <bool Centred>
static void choose_boxes(const float* boxes, const float* scores, float part, const float* limit, i64 n, i64 count,
                         i64* out, u64* order, float* room) {
  i64 candidates = 0;
  for (i64 b = 0; b < n; ++b) {
    const float score = scores[b];
    order[candidates] = ranked(~order_key(score), b);
    candidates += (limit != nullptr ? score > *limit : score == score) ? 1 : 0;
  }
  sort_all(order, candidates, RankedBefore());
  Box2d* chosen = (Box2d*)room;
  i64 found = 0;
  for (i64 i = 0; i < candidates && found < count; ++i) {
    const i64 b = place_of(order[i]);
    const Box2d box = box_from<Centred>(boxes + 4 * b);
    bool free = true;
    for (i64 c = 0; c < found && free; ++c) free = !overlaps(chosen[c], box, part);
    if (!free) continue;
    chosen[found] = box;
    out[found++] = b;
  }
  for (; found < count; ++found) out[found] = -1;
}
)";

}  // namespace

std::vector<PreludePart> OpaqueParts() {
  return {{"running_fold", {}, kRunningFold},
          {"running_sum_f32", {"running_fold", "mem_f32"}, kRunningSumF32},
          {"sort", {}, kSort},
          {"row_order", {"sort"}, kRowOrder},
          {"chosen_places", {}, kChosenPlaces},
          {"box_choice", {"row_order"}, kBoxChoice}};
}

}  // namespace fusion
