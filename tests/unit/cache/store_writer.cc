// Publishes bundles into a store until it is killed, and says after each one that it is done.
//
//   store_writer DIR FIRST       ->  "7\n8\n9\n..." on stdout
#include <unistd.h>

#include <cstdlib>

#include "core/cache/rocks/rocks_store.h"
#include "tests/support/sample_bundle.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  fusion::RocksStoreOptions options;
  options.dir = argv[1];
  options.min_free_bytes = 0;
  auto store = fusion::RocksStore::Open(options, fusion::Logger::Silent());
  if (!store.ok()) return 3;
  for (int i = std::atoi(argv[2]);; ++i) {
    fusion::Bundle bundle;
    bundle.plan = std::make_shared<fusion::StoredPlan>(
        fusion::MakeStoredPlan(fusion::StrCat("graph ", i), fusion::SamplePlan(), i));
    for (int k = 0; k < 3; ++k) {
      bundle.kernels.push_back(
          std::make_shared<fusion::KernelArtifact>(fusion::SampleKernel(i * 3 + k, 30000)));
    }
    if (!(*store)->PutBundle(bundle).ok()) return 4;
    std::string line = fusion::StrCat(i, "\n");
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0) return 5;
  }
}
