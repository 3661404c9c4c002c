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
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/device/host_isa.h"
#include "core/probe/arithmetic.h"
#include "core/probe/streams.h"
#include "core/probe/team.h"

namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// Work per second of `body` (which returns the work it did) on `threads` threads at once; median
// of 9.
double Rate(int threads, const std::function<double(int)>& body) {
  std::vector<double> rates;
  for (int run = 0; run < 9; ++run) {
    rates.push_back(fusion::RunOnThreads(threads, body).work_per_s);
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

volatile float sink;

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

double StreamRate(int threads, int reads, int writes, long bytes, bool streaming) {
  const fusion::Isa isa = fusion::HostIsa().value();
  const fusion::StreamPass pass = fusion::FindStreamPass(reads, writes, streaming, isa);
  std::vector<fusion::Streams> all;
  for (int t = 0; t < threads; ++t) all.emplace_back(reads, writes, bytes);
  const auto moved = static_cast<double>(all[0].array_floats() * 4 * (reads + writes));
  const long times = std::max(1L, static_cast<long>(2e9 / moved / 4));
  return Rate(threads, [&](int t) {
    const fusion::Streams& s = all[static_cast<size_t>(t)];
    for (long k = 0; k < times; ++k) pass(s, 0, s.array_floats());
    return moved * static_cast<double>(times);
  });
}

// Prints the rates of one mix; false for a mix that is not known.
bool PrintStream(int reads, int writes, long bytes, int threads) {
  const std::optional<fusion::Isa> isa = fusion::HostIsa();
  if (!isa || fusion::FindStreamPass(reads, writes, false, *isa) == nullptr) return false;
  const double plain = StreamRate(threads, reads, writes, bytes, false) * 1e-9;
  const double streaming =
      writes > 0 ? StreamRate(threads, reads, writes, bytes, true) * 1e-9 : plain;
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
    const bool known = PrintStream(std::atoi(argv[2]), std::atoi(argv[3]), std::atol(argv[4]),
                                   argc > 5 ? std::atoi(argv[5]) : 1);
    return known ? 0 : 2;
  }
  int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  constexpr long kSteps = 4000000;
  std::printf("{\n  \"threads\": %d,\n", threads);
  if (__builtin_cpu_supports("avx512f")) {
    std::printf("  \"fma_avx512_gflops\": %.1f,\n",
                Rate(threads, [](int) { return fusion::MultiplyAdd512(kSteps); }) * 1e-9);
  }
  if (__builtin_cpu_supports("avx512bf16")) {
    std::printf("  \"dot_bf16_gflops\": %.1f,\n",
                Rate(threads, [](int) { return fusion::DotBf16(kSteps); }) * 1e-9);
  }
  if (__builtin_cpu_supports("avx512vnni")) {
    std::printf("  \"dot_i8_gops\": %.1f,\n",
                Rate(threads, [](int) { return fusion::DotI8(kSteps); }) * 1e-9);
  }
  if (fusion::HostRuns(fusion::Isa::kAvx512Amx)) {
    std::printf("  \"tiles_bf16_gflops\": %.1f,\n",
                Rate(threads, [](int) { return fusion::TilesBf16(kSteps); }) * 1e-9);
    std::printf("  \"tiles_i8_gops\": %.1f,\n",
                Rate(threads, [](int) { return fusion::TilesI8(kSteps); }) * 1e-9);
  }
  if (__builtin_cpu_supports("avx2")) {
    std::printf("  \"fma_avx2_gflops\": %.1f,\n",
                Rate(threads, [](int) { return fusion::MultiplyAdd256(kSteps); }) * 1e-9);
  }
  std::printf("  \"muladd_sse_gflops\": %.1f,\n",
              Rate(threads, [](int) { return fusion::MultiplyAdd128(kSteps); }) * 1e-9);
  if (__builtin_cpu_supports("avx2")) PrintBandwidth(threads);
  if (__builtin_cpu_supports("avx2")) std::printf("  \"turn_ns\": %.2f,\n", TurnNanoseconds());
  std::printf("  \"dispatch_us\": %.2f\n}\n", DispatchMicroseconds());
  return 0;
}
