#include "core/compile/process/resource_use.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "core/base/files/file.h"
#include "core/compile/command.h"

namespace fusion {
namespace {

class BytesBelowTest : public testing::Test {
 protected:
  static constexpr int64_t kEnough = 1 << 20;

  int64_t Bytes() const { return BytesBelow(dir_.path(), kEnough); }

  TempDir dir_ = TempDir::Create(testing::TempDir(), "bytes-").value();
};

TEST_F(BytesBelowTest, CountsWhatFilesTakeAtAnyDepth) {
  EXPECT_EQ(Bytes(), 0);
  ASSERT_TRUE(MakeDirectories(dir_.path() + "/a/b").ok());
  ASSERT_TRUE(WriteFile(dir_.path() + "/a/b/file", std::string(100000, 'x')).ok());
  EXPECT_GE(Bytes(), 100000);
  EXPECT_LE(Bytes(), 200000);
}

TEST_F(BytesBelowTest, StopsAtEnough) {
  ASSERT_TRUE(WriteFile(dir_.path() + "/file", std::string(3 << 20, 'x')).ok());
  EXPECT_EQ(Bytes(), kEnough + 1);
}

TEST_F(BytesBelowTest, ManyEmptyFilesAreMuchToo) {
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(WriteFile(StrCat(dir_.path(), "/", i), "").ok());
  EXPECT_EQ(Bytes(), kEnough + 1);
}

TEST_F(BytesBelowTest, NothingHidesInTheDeepOrBehindALink) {
  std::filesystem::create_directory_symlink("/usr", dir_.path() + "/link");
  EXPECT_LE(Bytes(), 8192);
  std::string deep = dir_.path();
  for (int i = 0; i < 20; ++i) deep += "/d";
  ASSERT_TRUE(MakeDirectories(deep).ok());
  EXPECT_EQ(Bytes(), kEnough + 1);
}

TEST_F(BytesBelowTest, ADirectoryThatIsGoneIsEmpty) {
  EXPECT_EQ(BytesBelow(dir_.path() + "/gone", kEnough), 0);
}

TEST(ProcessTable, CountsThreadsOfAllThatAProcessStarted) {
  std::thread another([] { std::this_thread::sleep_for(std::chrono::seconds(1)); });
  EXPECT_GE(ProcessTable().ThreadsOf(getpid()), 2);
  another.join();
  absl::StatusOr<ChildProcess> child = ChildProcess::Spawn(
      {.exec_path = FUSION_EXEC, .argv = {"/bin/sh", "-c", "sleep 100 & sleep 100 & wait"}});
  ASSERT_TRUE(child.ok()) << child.status();
  ProcessTable table;
  for (int i = 0; i < 100 && table.ThreadsOf(child->pid()) != 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(table.ThreadsOf(child->pid()), 3);
  EXPECT_GE(ProcessTable().ThreadsOf(getpid()), 4);
  child->KillGroup();
  EXPECT_TRUE(child->WaitFor(std::chrono::seconds(10)).has_value());
  EXPECT_EQ(ProcessTable().ThreadsOf(child->pid()), 0);
}

}  // namespace
}  // namespace fusion
