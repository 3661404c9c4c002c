#include "core/base/files/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace fusion {
namespace {

TEST(File, WhatIsWrittenIsRead) {
  TempDir dir = TempDir::Create(testing::TempDir(), "file-test-").value();
  std::string path = dir.path() + "/x";
  ASSERT_TRUE(WriteFile(path, std::string_view("a\0b", 3)).ok());
  EXPECT_EQ(ReadFile(path, 3).value(), std::string("a\0b", 3));
  EXPECT_EQ(ReadFile(path, 2).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadFile(dir.path() + "/y", 9).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadFile(path + "/y", 9).status().code(), absl::StatusCode::kNotFound);
}

// As a shell's redirection has it: nothing that stands there already is lost.
TEST(File, ADescriptorIsWrittenToWhereItStands) {
  TempDir dir = TempDir::Create("/tmp", "file-test-").value();
  const std::string path = dir.path() + "/log";
  const UniqueFd log(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(write(log.get(), "one ", 4), 4);
  const std::string own = StrCat("/dev/fd/", log.get());
  EXPECT_TRUE(CheckWritesFile(own).ok());
  EXPECT_TRUE(WriteFile(own, "two ").ok());
  ASSERT_EQ(write(log.get(), "three", 5), 5);
  EXPECT_EQ(ReadFile(path, 100).value(), "one two three");
  EXPECT_FALSE(WriteFile("/dev/fd/99999", "lost").ok());
  EXPECT_TRUE(WriteFile("/dev/null", "lost").ok());
}

TEST(File, OnlyRegularFilesAreOpened) {
  TempDir dir = TempDir::Create("/tmp", "file-test-").value();
  const std::string pipe = dir.path() + "/pipe", bound = dir.path() + "/socket";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  bound.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const std::pair<std::string, std::string> others[] = {{dir.path(), "is a directory"},
                                                        {pipe, "is a pipe"},
                                                        {bound, "is a socket"},
                                                        {"/dev/zero", "is a device"}};
  for (const auto& [path, words] : others) {
    const absl::Status refused = OpenRegularFile(path).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_EQ(std::string(Message(refused)), words + ", not a regular file") << path;
    EXPECT_EQ(ReadFile(path, 1 << 20).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(CheckReplacesFile(path)), Message(refused));
    if (path == "/dev/zero") continue;  // takes what is written to it
    EXPECT_EQ(Message(CheckWritesFile(path)), Message(refused));
    const absl::Status written = WriteFile(path, "abc");  // nor does it wait for a reader
    EXPECT_EQ(written.code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_NE(std::string(Message(written)).find(path), std::string::npos);
  }
  const std::string link = dir.path() + "/link";
  ASSERT_TRUE(WriteFile(dir.path() + "/x", "abc").ok());
  std::filesystem::create_symlink(dir.path() + "/x", link);
  EXPECT_EQ(OpenRegularFile(link)->bytes, 3);
  EXPECT_TRUE(CheckWritesFile(link).ok());
  EXPECT_TRUE(CheckWritesFile(dir.path() + "/none").ok());
  EXPECT_FALSE(OpenRegularFile(link, /*follow_links=*/false).ok());
}

TEST(File, WhatIsReplacedIsTheOldOneOrTheNewOne) {
  TempDir dir = TempDir::Create(testing::TempDir(), "file-").value();
  const std::string path = dir.path() + "/record";
  ASSERT_TRUE(ReplaceFile(path, "one").ok());
  ASSERT_TRUE(ReplaceFile(path, "two").ok());
  EXPECT_EQ(ReadFile(path, 100).value(), "two");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  // Only the owner may read it, whatever another program has left.
  ASSERT_TRUE(WriteFile(path + ".new", "left", FileRights::kUmask).ok());
  std::filesystem::permissions(path + ".new", std::filesystem::perms(0666));
  ASSERT_TRUE(ReplaceFile(path, "two").ok());
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
  // What cannot be written to its end leaves the old one.
  ASSERT_TRUE(MakeDirectories(path + ".new").ok());
  absl::Status refused = ReplaceFile(path, "three");
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(std::string(Message(refused)).find(path), std::string::npos);
  EXPECT_EQ(ReadFile(path, 100).value(), "two");
}

TEST(File, TempDirsDisappearWithTheirContent) {
  std::string path;
  {
    TempDir dir = TempDir::Create(testing::TempDir(), "file-test-").value();
    TempDir moved = std::move(dir);
    path = moved.path();
    ASSERT_TRUE(MakeDirectories(path + "/a/b").ok());
    ASSERT_TRUE(WriteFile(path + "/a/b/c", "x").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(TempDir::Create(path, "nowhere-").ok());
}

// Does what it does to files as nobody, if this is root, whom no rights bind.
class NotAsRoot {
 public:
  NotAsRoot() { setfsuid(geteuid() == 0 ? 65534 : geteuid()); }
  ~NotAsRoot() { setfsuid(geteuid()); }
  NotAsRoot(const NotAsRoot&) = delete;
  NotAsRoot& operator=(const NotAsRoot&) = delete;
};

TEST(File, ATreeGoesWhateverTheRightsOfItsDirectories) {
  const NotAsRoot nobody;
  const TempDir dir = TempDir::Create("/tmp", "file-test-").value();
  const std::string kept = dir.path() + "/kept";
  const std::string tree = dir.path() + "/tree";
  ASSERT_TRUE(MakeDirectories(kept).ok());
  ASSERT_TRUE(WriteFile(kept + "/file", "x").ok());
  ASSERT_EQ(chmod(kept.c_str(), 0500), 0);
  const std::pair<const char*, mode_t> inner_first[] = {
      {"/a/a", 0300}, {"/a", 0300}, {"/b/b", 0500}, {"/b", 0500}, {"/c", 0}, {"", 0100}};
  for (const auto& [name, mode] : inner_first) {
    ASSERT_TRUE(MakeDirectories(tree + name).ok());
    ASSERT_TRUE(WriteFile(StrCat(tree, name, "/file"), "x").ok());
    std::filesystem::create_directory_symlink(kept, StrCat(tree, name, "/link"));
  }
  for (const auto& [name, mode] : inner_first) ASSERT_EQ(chmod((tree + name).c_str(), mode), 0);
  const absl::Status removed = RemoveTree(tree);
  EXPECT_TRUE(removed.ok()) << removed;
  EXPECT_FALSE(std::filesystem::exists(tree));
  struct stat facts {};
  ASSERT_EQ(stat(kept.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0500u) << "links are not followed";
  EXPECT_EQ(ReadFile(kept + "/file", 1).value(), "x");
}

TEST(File, ATreeGoesHoweverDeepItIs) {
  TempDir dir = TempDir::Create(testing::TempDir(), "file-test-").value();
  const std::string path = dir.path() + "/tree";
  std::string deep = path;
  ASSERT_TRUE(MakeDirectories(path).ok());
  for (int i = 0; i < 1000; ++i) {
    deep += "/d";
    ASSERT_EQ(mkdir(deep.c_str(), 0700), 0) << std::strerror(errno);
  }
  // Names that those of the deep get on their way.
  ASSERT_TRUE(MakeDirectories(path + "/lifted-1/lifted-2").ok());
  ASSERT_TRUE(WriteFile(path + "/lifted-1/lifted-2/file", "x").ok());
  ASSERT_TRUE(WriteFile(path + "/lifted-2", "x").ok());
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit few = {std::min<rlim_t>(before.rlim_cur, 100), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const absl::Status removed = RemoveTree(path);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(removed.ok()) << removed;
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace fusion
