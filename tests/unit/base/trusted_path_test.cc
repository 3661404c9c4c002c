#include "core/base/files/trusted_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TrustedPathTest : public testing::Test {
 protected:
  std::string Dir(const std::string& name, mode_t mode = 0755) {
    std::filesystem::create_directory(dir_.path(name));
    return Change(name, mode);
  }
  std::string File(const std::string& name, mode_t mode = 0644) {
    dir_.Write(name, "text");
    return Change(name, mode);
  }
  std::string Change(const std::string& name, mode_t mode) {
    EXPECT_EQ(chmod(dir_.path(name).c_str(), mode), 0);
    return dir_.path(name);
  }
  static void ExpectRefused(const absl::Status& status, const std::string& path,
                            const std::string& why) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(Message(status)), AllOf(HasSubstr(Quote(path)), HasSubstr(why)));
  }
  ScratchDir dir_;
};

TEST_F(TrustedPathTest, WhatOnlyItsOwnerCanWriteIsTrusted) {
  EXPECT_TRUE(CheckTrustedPath(File("file")).ok()) << "below /tmp, which is sticky";
  EXPECT_TRUE(CheckTrustedPath(Dir("dir")).ok());
  EXPECT_TRUE(CheckTrustedPath("/").ok());
  EXPECT_TRUE(CheckTrustedPath("/usr/bin/env").ok());
  EXPECT_TRUE(absl::IsNotFound(CheckTrustedPath(dir_.path("none"))));
  EXPECT_TRUE(absl::IsNotFound(CheckTrustedPath(dir_.path("none/below"))));
}

TEST_F(TrustedPathTest, WhoeverElseCanWriteItIsNamed) {
  ExpectRefused(CheckTrustedPath(File("a", 0664)), dir_.path("a"),
                "can be written by its group (mode 0664)");
  ExpectRefused(CheckTrustedPath(File("b", 0646)), dir_.path("b"),
                "can be written by everybody (mode 0646)");
  ExpectRefused(CheckTrustedPath(Dir("c", 0777)), dir_.path("c"), "everybody (mode 0777)");
  ExpectRefused(CheckTrustedPath(Dir("d", 01777)), dir_.path("d"), "everybody (mode 1777)");
}

TEST_F(TrustedPathTest, DirectoriesOnTheWayCountUnlessTheyAreSticky) {
  Dir("open", 0777);
  ExpectRefused(CheckTrustedPath(File("open/file")), dir_.path("open"), "everybody (mode 0777)");
  Dir("sticky", 01777);
  EXPECT_TRUE(CheckTrustedPath(File("sticky/file")).ok());
  EXPECT_TRUE(CheckTrustedPlace(dir_.path("sticky/none")).ok());
  ExpectRefused(CheckTrustedPlace(dir_.path("open/none")), dir_.path("open"), "everybody");
  EXPECT_TRUE(CheckTrustedPlace(File("sticky/shared", 0666)).ok()) << "only where it lies";
  EXPECT_TRUE(absl::IsNotFound(CheckTrustedPlace(dir_.path("none/below"))));
}

TEST_F(TrustedPathTest, OnTheWayAUsersPrivateGroupIsTheUser) {
  Dir("mine");
  File("mine/file");
  if (geteuid() != 0) GTEST_SKIP() << "which groups a user has depends on the system";
  ASSERT_EQ(chown(dir_.path("mine").c_str(), 0, 0), 0);  // root, and nobody else is in it
  Change("mine", 0775);
  EXPECT_TRUE(CheckTrustedPath(dir_.path("mine/file")).ok());
  ExpectRefused(CheckTrustedPath(dir_.path("mine")), dir_.path("mine"), "its group (mode 0775)");
  ASSERT_EQ(chown(dir_.path("mine").c_str(), 0, 65534), 0);
  ExpectRefused(CheckTrustedPath(dir_.path("mine/file")), dir_.path("mine"), "its group");
}

TEST_F(TrustedPathTest, APrimaryGroupOfAnotherUserIsNotPrivate) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give the system other users";
  Dir("mine");
  const std::string file = File("mine/file");
  ASSERT_EQ(chown(dir_.path("mine").c_str(), 0, 0), 0);
  Change("mine", 0775);
  const std::string users = "root:x:0:0::/:/bin/sh\n";
  // What a child of this process says that sees these users and their sources.
  auto trusts = [&](const std::string& passwd, const std::string& sources) {
    const std::string passwd_file = dir_.Write("passwd", passwd);
    const std::string sources_file = dir_.Write("sources", sources);
    const pid_t child = fork();
    if (child == 0) {
      const bool shown =
          unshare(CLONE_NEWNS) == 0 &&
          mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
          mount(passwd_file.c_str(), "/etc/passwd", nullptr, MS_BIND, nullptr) == 0 &&
          mount(sources_file.c_str(), "/etc/nsswitch.conf", nullptr, MS_BIND, nullptr) == 0;
      _exit(!shown ? 2 : CheckTrustedPath(file).ok() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  if (trusts(users, "passwd: files\n") == 2) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(trusts(users, "passwd: files\n"), 1);
  EXPECT_EQ(trusts(users, "passwd:         files systemd # usual\ngroup: files sss\n"), 1);
  EXPECT_EQ(trusts(users + "other:x:1000:1000::/:/bin/sh\n", "passwd: files\n"), 1);
  EXPECT_EQ(trusts(users + "bob:x:1000:0::/:/bin/sh\n", "passwd: files\n"), 0);
  EXPECT_EQ(trusts(users + "toor:x:0:0::/:/bin/sh\n", "passwd: files\n"), 1) << "the same user";
  for (const char* source : {"sss", "ldap", "compat", "[NOTFOUND=return] winbind"}) {
    EXPECT_EQ(trusts(users, StrCat("passwd: files ", source, "\n")), 0) << source;
  }
  std::string many = users;
  for (int uid = 1000; uid < 1000 + (1 << 16); ++uid) {
    many += StrCat("u", uid, ":x:", uid, ":", uid, "::/:/bin/sh\n");
  }
  EXPECT_EQ(trusts(many, "passwd: files\n"), 0) << "more than are looked at";
}

TEST_F(TrustedPathTest, LinksAreFollowedAndMustLieWhereNobodyElseCanChangeThem) {
  Dir("open", 0777);
  Dir("closed");
  File("closed/file");
  File("open/file");
  auto link = [&](const std::string& to, const std::string& name) {
    std::filesystem::create_symlink(to, dir_.path(name));
    return dir_.path(name);
  };
  EXPECT_TRUE(CheckTrustedPath(link("file", "closed/link")).ok());
  EXPECT_TRUE(CheckTrustedPath(link("closed/../closed/./link", "chain")).ok());
  EXPECT_TRUE(CheckTrustedPath(link(dir_.path("closed"), "whole") + "/file").ok());
  ExpectRefused(CheckTrustedPath(link(dir_.path("closed/file"), "open/link")), dir_.path("open"),
                "everybody");
  ExpectRefused(CheckTrustedPath(link(dir_.path("open/file"), "closed/out")), dir_.path("open"),
                "everybody");
  const absl::Status loop = CheckTrustedPath(link("loop", "loop"));
  EXPECT_TRUE(absl::IsFailedPrecondition(loop)) << loop;
}

TEST_F(TrustedPathTest, OfATreeEverythingCounts) {
  Dir("tree");
  Dir("tree/db");
  File("tree/db/a");
  EXPECT_TRUE(CheckTrustedTree(dir_.path("tree")).ok());
  EXPECT_TRUE(CheckTrustedTree(File("single")).ok());
  std::filesystem::create_symlink("/nowhere", dir_.path("tree/link"));
  EXPECT_TRUE(CheckTrustedTree(dir_.path("tree")).ok());
  File("tree/db/b", 0666);
  ExpectRefused(CheckTrustedTree(dir_.path("tree")), dir_.path("tree/db/b"), "everybody");
  EXPECT_TRUE(absl::IsNotFound(CheckTrustedTree(dir_.path("none"))));
}

TEST_F(TrustedPathTest, WhatAnotherUserOwnsHeCanWrite) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chown(File("theirs", 0600).c_str(), 65534, 65534), 0);
  ExpectRefused(CheckTrustedPath(dir_.path("theirs")), dir_.path("theirs"),
                "belongs to user 65534; expected root or this process's user 0");
  Dir("their-dir");
  File("their-dir/ours");
  ASSERT_EQ(chown(dir_.path("their-dir").c_str(), 65534, 65534), 0);
  ExpectRefused(CheckTrustedPath(dir_.path("their-dir/ours")), dir_.path("their-dir"),
                "belongs to user 65534");
}

}  // namespace
}  // namespace fusion
