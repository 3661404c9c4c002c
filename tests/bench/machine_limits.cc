// Measures the numbers a CPU device spec (core/device/specs/*.json) wants: FMA peak per ISA, cost
// of a vector addition, read and copy bandwidth per memory level, and the cost of starting a phase
// on a thread pool.
//
//   machine_limits [threads]     prints one JSON object; medians of 9 runs
//   machine_limits stream READS WRITES BYTES [threads]
//                                what a kernel of so many tensors read and written can move, BYTES
//                                in all of each thread: GB/s of plain and of streaming stores,
//                                medians
//
// Vector code is chosen per function, so the program starts on any x86-64.
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/device/host_isa.h"

namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// Work per second of `body` (which returns the work it did) on `threads` threads at once; median
// of 9.
double Rate(int threads, const std::function<double(int)>& body) {
  std::vector<double> rates;
  for (int run = 0; run < 9; ++run) {
    std::atomic<int> ready{0};
    std::atomic<bool> go{false};
    std::vector<double> work(static_cast<size_t>(threads), 0);
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        ready.fetch_add(1);
        while (!go.load()) {
        }
        work[static_cast<size_t>(t)] = body(t);
      });
    }
    while (ready.load() < threads) {
    }
    Clock::time_point begin = Clock::now();
    go.store(true);
    for (std::thread& thread : pool) thread.join();
    double seconds = Seconds(Clock::now() - begin);
    double total = 0;
    for (double w : work) total += w;
    rates.push_back(total / seconds);
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

volatile float sink;

__attribute__((target("avx512f"))) double Fma512(long n) {
  __m512 acc[16];
  for (int i = 0; i < 16; ++i) acc[i] = _mm512_set1_ps(static_cast<float>(i) * 0.1f);
  __m512 x = _mm512_set1_ps(0.999f);
  __m512 y = _mm512_set1_ps(1e-5f);
  for (long k = 0; k < n; ++k) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) acc[i] = _mm512_fmadd_ps(acc[i], x, y);
  }
  float sum = 0;
  for (const __m512& a : acc) sum += _mm512_reduce_add_ps(a);
  sink = sum;
  return 16.0 * 32.0 * static_cast<double>(n);
}

// Two products a lane and instruction.
__attribute__((target("avx512f,avx512bf16"))) double DotBf16(long n) {
  __m512 acc[16];
  for (int i = 0; i < 16; ++i) acc[i] = _mm512_set1_ps(static_cast<float>(i) * 0.1f);
  const __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
  const __m512bh y = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1e-5f), _mm512_set1_ps(1e-6f));
  for (long k = 0; k < n; ++k) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) acc[i] = _mm512_dpbf16_ps(acc[i], x, y);
  }
  float sum = 0;
  for (const __m512& a : acc) sum += _mm512_reduce_add_ps(a);
  sink = sum;
  return 16.0 * 64.0 * static_cast<double>(n);
}

// Four products a lane and instruction.
__attribute__((target("avx512f,avx512vnni"))) double DotI8(long n) {
  __m512i acc[16];
  for (int i = 0; i < 16; ++i) acc[i] = _mm512_set1_epi32(i);
  const __m512i x = _mm512_set1_epi8(3);
  const __m512i y = _mm512_set1_epi8(-1);
  for (long k = 0; k < n; ++k) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) acc[i] = _mm512_dpbusd_epi32(acc[i], x, y);
  }
  int sum = 0;
  for (const __m512i& a : acc) sum += _mm512_reduce_add_epi32(a);
  sink = static_cast<float>(sum);
  return 16.0 * 128.0 * static_cast<double>(n);
}

// Tiles of 16 rows, two of rows by two of columns, fetched from L1 for each step.
struct TileShapes {
  unsigned char palette = 1, start_row = 0, none[14] = {};
  unsigned short row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  unsigned char rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
TileShapes shapes;  // in memory: the intrinsic says that it reads 8 bytes
alignas(64) char tiles[4][1024];

__attribute__((target("amx-tile,amx-bf16,amx-int8"))) double Tiles(long n, bool bytes) {
  _tile_loadconfig(&shapes);
  for (long k = 0; k < n; ++k) {
    _tile_loadd(4, tiles[0], 64);
    _tile_loadd(5, tiles[1], 64);
    _tile_loadd(6, tiles[2], 64);
    _tile_loadd(7, tiles[3], 64);
    if (bytes) {
      _tile_dpbusd(0, 4, 6);
      _tile_dpbusd(1, 4, 7);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    } else {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_release();
  return 4 * 2.0 * 16 * 16 * (bytes ? 64 : 32) * static_cast<double>(n);
}

__attribute__((target("avx2,fma"))) double Fma256(long n) {
  __m256 acc[12];
  for (int i = 0; i < 12; ++i) acc[i] = _mm256_set1_ps(static_cast<float>(i) * 0.1f);
  __m256 x = _mm256_set1_ps(0.999f);
  __m256 y = _mm256_set1_ps(1e-5f);
  for (long k = 0; k < n; ++k) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) acc[i] = _mm256_fmadd_ps(acc[i], x, y);
  }
  float sum = 0;
  for (const __m256& a : acc) sum += a[0] + a[5];
  sink = sum;
  return 12.0 * 16.0 * static_cast<double>(n);
}

double MulAdd128(long n) {
  __m128 acc[8];
  for (int i = 0; i < 8; ++i) acc[i] = _mm_set1_ps(static_cast<float>(i) * 0.1f);
  __m128 x = _mm_set1_ps(0.999f);
  __m128 y = _mm_set1_ps(1e-5f);
  for (long k = 0; k < n; ++k) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) acc[i] = _mm_add_ps(_mm_mul_ps(acc[i], x), y);
  }
  float sum = 0;
  for (const __m128& a : acc) sum += a[0];
  sink = sum;
  return 8.0 * 8.0 * static_cast<double>(n);
}

struct Buffer {
  std::unique_ptr<float, decltype(&std::free)> data{nullptr, &std::free};
  size_t floats = 0;
};

__attribute__((target("avx2"))) double Read(const Buffer& b, long times) {
  __m256 s0 = _mm256_setzero_ps();
  __m256 s1 = s0;
  __m256 s2 = s0;
  __m256 s3 = s0;
  const float* p = b.data.get();
  for (long t = 0; t < times; ++t) {
    for (size_t i = 0; i < b.floats; i += 32) {
      s0 = _mm256_add_ps(s0, _mm256_load_ps(p + i));
      s1 = _mm256_add_ps(s1, _mm256_load_ps(p + i + 8));
      s2 = _mm256_add_ps(s2, _mm256_load_ps(p + i + 16));
      s3 = _mm256_add_ps(s3, _mm256_load_ps(p + i + 24));
    }
  }
  sink = s0[0] + s1[0] + s2[0] + s3[0];
  return static_cast<double>(b.floats) * 4.0 * static_cast<double>(times);
}

__attribute__((target("avx2"))) double Copy(const Buffer& b, long times) {
  float* p = b.data.get();
  size_t half = b.floats / 2;
  for (long t = 0; t < times; ++t) {
    for (size_t i = 0; i < half; i += 8) _mm256_store_ps(p + half + i, _mm256_load_ps(p + i));
  }
  return static_cast<double>(b.floats) * 4.0 * static_cast<double>(times);
}

// Streams: arrays of equal length that are read side by side, and as many that are written.
struct Streams {
  std::vector<Buffer> read;
  std::vector<Buffer> written;
};

// One pass over all of them, V at a time; what is read is added up.
template <class V, int kReads, int kWrites, bool kStreaming>
inline __attribute__((always_inline)) void Sweep(const Streams& s, V* sums) {
  constexpr size_t kStep = sizeof(V) / sizeof(float);
  const size_t floats = kReads > 0 ? s.read[0].floats : s.written[0].floats;
  const float* from[kReads > 0 ? kReads : 1];
  float* to[kWrites > 0 ? kWrites : 1];
  for (int r = 0; r < kReads; ++r) from[r] = s.read[static_cast<size_t>(r)].data.get();
  for (int w = 0; w < kWrites; ++w) to[w] = s.written[static_cast<size_t>(w)].data.get();
  for (size_t i = 0; i < floats; i += 4 * kStep) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      V v = {};
#pragma GCC unroll 4
      for (int r = 0; r < kReads; ++r) v += *reinterpret_cast<const V*>(from[r] + i + j * kStep);
      if (kWrites == 0) sums[j] += v;
#pragma GCC unroll 4
      for (int w = 0; w < kWrites; ++w) {
        V* place = reinterpret_cast<V*>(to[w] + i + j * kStep);
        if (kStreaming) {
          asm volatile("vmovntps %1, %0" : "=m"(*place) : "v"(v));
        } else {
          *place = v;
        }
      }
    }
  }
}

using V8 = float __attribute__((vector_size(32), may_alias));
using V16 = float __attribute__((vector_size(64), may_alias));

template <int kReads, int kWrites, bool kStreaming>
__attribute__((target("avx2"), noinline)) void Sweep256(const Streams& s, long times) {
  V8 sums[4] = {};
  for (long t = 0; t < times; ++t) Sweep<V8, kReads, kWrites, kStreaming>(s, sums);
  sink = sums[0][0] + sums[1][0] + sums[2][0] + sums[3][0];
}

template <int kReads, int kWrites, bool kStreaming>
__attribute__((target("avx512f"), noinline)) void Sweep512(const Streams& s, long times) {
  V16 sums[4] = {};
  for (long t = 0; t < times; ++t) Sweep<V16, kReads, kWrites, kStreaming>(s, sums);
  sink = sums[0][0] + sums[1][0] + sums[2][0] + sums[3][0];
}

template <int kReads, int kWrites>
double StreamRate(int threads, long bytes, bool streaming) {
  const size_t arrays = kReads + kWrites;
  const size_t floats = static_cast<size_t>(bytes) / 4 / arrays / 64 * 64;
  std::vector<Streams> all(static_cast<size_t>(threads));
  for (Streams& s : all) {
    for (size_t a = 0; a < arrays; ++a) {
      Buffer b;
      b.floats = floats;
      // Not a whole number of pages apart, as tensors of a plan are not.
      const size_t room = (floats * 4 + (1u << 21)) >> 21 << 21;
      b.data.reset(static_cast<float*>(std::aligned_alloc(1u << 21, room)));
      std::fill_n(b.data.get(), floats, 1.0f);
      (a < kReads ? s.read : s.written).push_back(std::move(b));
    }
  }
  const double moved = static_cast<double>(floats * 4 * arrays);
  const long times = std::max(1L, static_cast<long>(2e9 / moved / 4));
  const bool wide = __builtin_cpu_supports("avx512f");
  return Rate(threads, [&](int t) {
    const Streams& s = all[static_cast<size_t>(t)];
    if (wide && streaming) Sweep512<kReads, kWrites, true>(s, times);
    if (wide && !streaming) Sweep512<kReads, kWrites, false>(s, times);
    if (!wide && streaming) Sweep256<kReads, kWrites, true>(s, times);
    if (!wide && !streaming) Sweep256<kReads, kWrites, false>(s, times);
    return moved * static_cast<double>(times);
  });
}

// Prints the rates of one mix; false for a mix that is not known.
bool PrintStream(int reads, int writes, long bytes, int threads) {
  double (*rate)(int, long, bool) = nullptr;
  if (reads == 1 && writes == 0) rate = StreamRate<1, 0>;
  if (reads == 2 && writes == 0) rate = StreamRate<2, 0>;
  if (reads == 1 && writes == 1) rate = StreamRate<1, 1>;
  if (reads == 2 && writes == 1) rate = StreamRate<2, 1>;
  if (reads == 3 && writes == 1) rate = StreamRate<3, 1>;
  if (rate == nullptr) return false;
  const double plain = rate(threads, bytes, false) * 1e-9;
  const double streaming = writes > 0 ? rate(threads, bytes, true) * 1e-9 : plain;
  std::printf("{\"reads\": %d, \"writes\": %d, \"bytes\": %ld, \"threads\": %d, ", reads, writes,
              bytes, threads);
  std::printf("\"plain_gb_per_s\": %.1f, \"streaming_gb_per_s\": %.1f}\n", plain, streaming);
  return true;
}

// A summed dim, as kernels walk it: its length, and how far a step moves in each operand.
struct Walk {
  long count, a, b;
};

// A block of six rows and two vectors, summed up over dims of which the last one is the fastest.
template <int D>
__attribute__((target("avx2,fma"), noinline)) void SumOver(const Walk (&walk)[D], const float* a,
                                                           const float* b, float* c) {
  __m256 sums[6][2] = {};
  long outer = 1;
  long a_at = 0;
  long b_at = 0;
  long at[D] = {};
  for (int d = 0; d < D - 1; ++d) outer *= walk[d].count;
  for (long o = 0; o < outer; ++o) {
    const float* pa = a + a_at;
    const float* pb = b + b_at;
    for (long k = 0; k < walk[D - 1].count; ++k) {
      __m256 low = _mm256_loadu_ps(pb);
      __m256 high = _mm256_loadu_ps(pb + 8);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        __m256 x = _mm256_broadcast_ss(pa + i);
        sums[i][0] = _mm256_fmadd_ps(x, low, sums[i][0]);
        sums[i][1] = _mm256_fmadd_ps(x, high, sums[i][1]);
      }
      pa += walk[D - 1].a;
      pb += walk[D - 1].b;
    }
    for (int d = D - 2; d >= 0; --d) {
      a_at += walk[d].a;
      b_at += walk[d].b;
      if (++at[d] < walk[d].count) break;
      a_at -= walk[d].count * walk[d].a;
      b_at -= walk[d].count * walk[d].b;
      at[d] = 0;
    }
  }
  for (int i = 0; i < 6; ++i) {
    _mm256_storeu_ps(c + i * 16, sums[i][0]);
    _mm256_storeu_ps(c + i * 16 + 8, sums[i][1]);
  }
}

// Nanoseconds that going on with the next stretch of a sum costs, beside adding it up: 3x3 windows
// of 32 channels in three dims, and as many steps in one.
double TurnNanoseconds() {
  constexpr long kRounds = 20000;
  std::vector<float> a(1 << 15, 1.0f);
  std::vector<float> b(1 << 15, 0.5f);
  std::vector<float> c(6 * 16);
  auto nanoseconds = [&](auto& walk) {
    double least = 1e9;
    for (int repeat = 0; repeat < 10; ++repeat) {
      Clock::time_point begin = Clock::now();
      for (long i = 0; i < kRounds; ++i) SumOver(walk, a.data(), b.data(), c.data());
      least = std::min(least, Seconds(Clock::now() - begin) * 1e9 / kRounds);
    }
    return least;
  };
  const Walk windows[3] = {{32, 58 * 12, 9 * 16}, {3, 58, 3 * 16}, {3, 1, 16}};
  const Walk stretch[1] = {{32 * 9, 8, 16}};
  return (nanoseconds(windows) - nanoseconds(stretch)) / (32 * 3);
}

// Microseconds to hand a phase to a spinning worker and wait for it.
double DispatchMicroseconds() {
  std::atomic<long> request{0};
  std::atomic<long> done{0};
  std::thread worker([&] {
    for (long seen = 0;;) {
      long now = request.load(std::memory_order_acquire);
      if (now == seen) continue;
      seen = now;
      if (seen < 0) return;
      done.store(seen, std::memory_order_release);
    }
  });
  constexpr long kRounds = 20000;
  Clock::time_point begin = Clock::now();
  for (long i = 1; i <= kRounds; ++i) {
    request.store(i, std::memory_order_release);
    while (done.load(std::memory_order_acquire) != i) {
    }
  }
  double us = Seconds(Clock::now() - begin) * 1e6 / kRounds;
  request.store(-1);
  worker.join();
  return us;
}

void PrintBandwidth(int threads) {
  struct Level {
    const char* name;
    size_t bytes;
  };
  for (Level level : {Level{"l1_16K", 16u << 10}, Level{"l2_512K", 512u << 10},
                      Level{"l3_8M", 8u << 20}, Level{"memory_256M", 256u << 20}}) {
    std::vector<Buffer> buffers(static_cast<size_t>(threads));
    for (Buffer& b : buffers) {
      b.floats = level.bytes / 4;
      b.data.reset(static_cast<float*>(
          std::aligned_alloc(1u << 21, std::max<size_t>(level.bytes, 1u << 21))));
      std::fill_n(b.data.get(), b.floats, 1.0f);
    }
    long times = std::max<long>(1, static_cast<long>((1ull << 30) / level.bytes));
    auto buffer = [&](int t) -> const Buffer& { return buffers[static_cast<size_t>(t)]; };
    double read = Rate(threads, [&](int t) { return Read(buffer(t), times); });
    double copy = Rate(threads, [&](int t) { return Copy(buffer(t), times); });
    std::printf("  \"%s_read_gb_per_s\": %.1f, \"%s_copy_gb_per_s\": %.1f,\n", level.name,
                read * 1e-9, level.name, copy * 1e-9);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 5 && std::string(argv[1]) == "stream") {
    const bool known = __builtin_cpu_supports("avx2") &&
                       PrintStream(std::atoi(argv[2]), std::atoi(argv[3]), std::atol(argv[4]),
                                   argc > 5 ? std::atoi(argv[5]) : 1);
    return known ? 0 : 2;
  }
  int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  constexpr long kSteps = 4000000;
  std::printf("{\n  \"threads\": %d,\n", threads);
  if (__builtin_cpu_supports("avx512f")) {
    std::printf("  \"fma_avx512_gflops\": %.1f,\n",
                Rate(threads, [](int) { return Fma512(kSteps); }) * 1e-9);
  }
  if (__builtin_cpu_supports("avx512bf16")) {
    std::printf("  \"dot_bf16_gflops\": %.1f,\n",
                Rate(threads, [](int) { return DotBf16(kSteps); }) * 1e-9);
  }
  if (__builtin_cpu_supports("avx512vnni")) {
    std::printf("  \"dot_i8_gops\": %.1f,\n",
                Rate(threads, [](int) { return DotI8(kSteps); }) * 1e-9);
  }
  if (fusion::HostRuns(fusion::Isa::kAvx512Amx)) {
    std::printf("  \"tiles_bf16_gflops\": %.1f,\n",
                Rate(threads, [](int) { return Tiles(kSteps, false); }) * 1e-9);
    std::printf("  \"tiles_i8_gops\": %.1f,\n",
                Rate(threads, [](int) { return Tiles(kSteps, true); }) * 1e-9);
  }
  if (__builtin_cpu_supports("avx2")) {
    std::printf("  \"fma_avx2_gflops\": %.1f,\n",
                Rate(threads, [](int) { return Fma256(kSteps); }) * 1e-9);
  }
  std::printf("  \"muladd_sse_gflops\": %.1f,\n",
              Rate(threads, [](int) { return MulAdd128(kSteps); }) * 1e-9);
  if (__builtin_cpu_supports("avx2")) PrintBandwidth(threads);
  if (__builtin_cpu_supports("avx2")) std::printf("  \"turn_ns\": %.2f,\n", TurnNanoseconds());
  std::printf("  \"dispatch_us\": %.2f\n}\n", DispatchMicroseconds());
  return 0;
}
