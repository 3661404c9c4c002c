// How long a store of many gigabytes takes to open: fills one through the Store interface, closes
// it, and times RocksStore::Open until a plan and a kernel are read.
//
//   store_restart DIR [--gib 10] [--kernel-bytes 20000] [--opens 5] [--json FILE]
//
// What is there already is used. If the file system has too little room, as much as fits is
// written; the answer says how much that was.
#include <sys/statvfs.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/cache/rocks/rocks_store.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

constexpr int kKernelsPerPlan = 20;

struct Options {
  std::string dir;
  double gib = 10;
  size_t kernel_bytes = 20000;
  int opens = 5;
  std::string json;
};

Bundle MakeBundle(int n, size_t kernel_bytes) {
  Bundle bundle;
  bundle.plan = std::make_shared<StoredPlan>(MakeStoredPlan(StrCat("graph ", n), SamplePlan(), n));
  for (int k = 0; k < kKernelsPerPlan; ++k) {
    bundle.kernels.push_back(
        std::make_shared<KernelArtifact>(SampleKernel(n * kKernelsPerPlan + k, kernel_bytes)));
  }
  return bundle;
}

int64_t FreeBytes(const std::string& dir) {
  struct statvfs info = {};
  if (statvfs(dir.c_str(), &info) != 0) return 0;
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

// Each bundle waits for the disk: writers that wait together wait once.
absl::Status Fill(const RocksStoreOptions& options, const Options& asked, int64_t target) {
  constexpr int kWriters = 16;
  ASSIGN_OR_RETURN(auto store, RocksStore::Open(options, Logger::Silent()));
  std::atomic<int> next{static_cast<int>(store->Stats()[0].plans)};
  std::vector<absl::Status> ends(kWriters);
  std::vector<std::thread> writers;
  for (absl::Status& end : ends) {
    writers.emplace_back([&] {
      while (end.ok() && store->Stats()[0].bytes < target &&
             FreeBytes(options.dir) > (int64_t{2} << 30)) {
        end = store->PutBundle(MakeBundle(next++, asked.kernel_bytes));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (const absl::Status& end : ends) RETURN_IF_ERROR(end);
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::ordered_json> Measure(const Options& asked) {
  RocksStoreOptions options;
  options.dir = asked.dir;
  const auto target = static_cast<int64_t>(asked.gib * (1 << 30));
  options.budget_bytes = 2 * target;
  RETURN_IF_ERROR(Fill(options, asked, target));
  std::vector<double> ms;
  StoreStats stats;
  for (int i = 0; i < asked.opens; ++i) {
    const Nanoseconds start = Clock::Real().Now();
    ASSIGN_OR_RETURN(auto store, RocksStore::Open(options, Logger::Silent()));
    const KernelArtifact kernel = SampleKernel(0, asked.kernel_bytes);
    if (!store->GetPlan({Sha256("graph 0")}) || !store->GetKernel({kernel.key})) {
      return DataLoss("the first plan or its kernel is not there");
    }
    ms.push_back(ToMilliseconds(Clock::Real().Now() - start));
    stats = store->Stats()[0];
  }
  std::sort(ms.begin(), ms.end());
  return nlohmann::ordered_json{{"plans", stats.plans},
                                {"kernels", stats.kernels},
                                {"bytes", stats.bytes},
                                {"disk_bytes", stats.disk_bytes},
                                {"opens", asked.opens},
                                {"open_ms_min", ms.front()},
                                {"open_ms_median", ms[ms.size() / 2]},
                                {"open_ms_max", ms.back()}};
}

int Main(int argc, char** argv) {
  Options asked;
  CLI::App app("Times the opening of a large store.", "store_restart");
  app.add_option("DIR", asked.dir, "directory of the store; filled as far as it is not")
      ->required();
  app.add_option("--gib", asked.gib, "GiB of entries")->check(CLI::Range(0.001, 1000.0));
  app.add_option("--kernel-bytes", asked.kernel_bytes, "bytes of the code of a kernel")
      ->check(CLI::Range(size_t{100}, size_t{1} << 26));
  app.add_option("--opens", asked.opens, "openings that are timed")->check(CLI::Range(1, 1000));
  app.add_option("--json", asked.json, "also into this file");
  CLI11_PARSE(app, argc, argv);
  absl::StatusOr<nlohmann::ordered_json> result = Measure(asked);
  if (!result.ok()) {
    std::fprintf(stderr, "store_restart: %s\n", std::string(Message(result.status())).c_str());
    return 1;
  }
  std::printf("%s\n", result->dump(2).c_str());
  if (!asked.json.empty()) std::ofstream(asked.json) << result->dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
