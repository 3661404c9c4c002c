#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "core/base/files/file.h"
#include "core/base/files/unique_fd.h"
#include "core/cache/rocks/rocks_store.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

// Starts the writer, lets it acknowledge `bundles` bundles, kills it; returns the last one it
// acknowledged.
int WriteAndKill(const std::string& dir, int first, int bundles) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.get(), STDOUT_FILENO);
  std::string start = StrCat(first);
  std::string path = dir;
  char program[] = FUSION_STORE_WRITER;
  char* argv[] = {program, path.data(), start.data(), nullptr};
  pid_t pid = 0;
  EXPECT_EQ(posix_spawn(&pid, FUSION_STORE_WRITER, &actions, nullptr, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  in.Reset();
  std::string text;
  char buffer[256];
  bool killed = false;
  for (ssize_t n = 0; (n = read(out.get(), buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
    if (!killed && std::count(text.begin(), text.end(), '\n') >= bundles) {
      EXPECT_EQ(kill(pid, SIGKILL), 0);
      killed = true;
    }
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status)) << "exit " << WEXITSTATUS(status);
  return first + static_cast<int>(std::count(text.begin(), text.end(), '\n')) - 1;
}

TEST(RocksKill, NothingAcknowledgedIsLostAndNoBundleIsTorn) {
  TempDir parent = TempDir::Create(testing::TempDir(), "rocks-kill-").value();
  RocksStoreOptions options;
  options.dir = parent.path() + "/store";
  options.min_free_bytes = 0;
  int first = 0;
  for (int round = 0; round < 5; ++round) {
    int last = WriteAndKill(options.dir, first, 5 + 17 * round);
    auto store = RocksStore::Open(options, Logger::Silent());
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_FALSE((*store)->started_empty_after_damage());
    for (int i = 0; i <= last + 1; ++i) {  // the one after may have been written, unacknowledged
      Found<StoredPlan> plan = (*store)->GetPlan({Sha256(StrCat("graph ", i))});
      EXPECT_TRUE(plan || i > last) << "lost bundle " << i;
      for (int k = 0; k < 3; ++k) {
        KernelArtifact expected = SampleKernel(i * 3 + k, 30000);
        Found<KernelArtifact> kernel = (*store)->GetKernel({expected.key, expected.full_key});
        EXPECT_EQ(static_cast<bool>(kernel), static_cast<bool>(plan)) << "torn bundle " << i;
        if (kernel) {
          EXPECT_EQ(kernel.value->binary, expected.binary);
        }
      }
    }
    EXPECT_EQ((*store)->Stats()[0].dropped, 0);
    first = last + 2;
    // Fills the gap so that the next round may expect everything.
    Bundle bundle;
    bundle.plan =
        std::make_shared<StoredPlan>(MakeStoredPlan(StrCat("graph ", last + 1), SamplePlan(), 0));
    for (int k = 0; k < 3; ++k) {
      bundle.kernels.push_back(
          std::make_shared<KernelArtifact>(SampleKernel((last + 1) * 3 + k, 30000)));
    }
    ASSERT_TRUE((*store)->PutBundle(bundle).ok());
  }
  EXPECT_GT(first, 150);
}

}  // namespace
}  // namespace fusion
