#include "server/transport/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "core/base/files/unique_fd.h"
#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

UniqueFd ListenOn(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(listen(fd.get(), 1), 0);
  return fd;
}

TEST(ListenAddressTest, ASocketOfADeadServerIsRemovedALivingOneIsNot) {
  ScratchDir dir;
  std::string path = dir.path("socket");
  EXPECT_TRUE(ClearUnixSocket(path).ok()) << "nothing there";
  {
    UniqueFd alive = ListenOn(path);
    EXPECT_TRUE(absl::IsFailedPrecondition(ClearUnixSocket(path)));
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_TRUE(ClearUnixSocket(path).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ListenAddressTest, AModeOfASocketGivesTheOwnerHisAndNobodyMore) {
  EXPECT_EQ(*ParseSocketMode("0660"), 0660u);
  EXPECT_EQ(*ParseSocketMode("600"), 0600u);
  EXPECT_EQ(*ParseSocketMode("0666"), 0666u);
  for (const char* bad :
       {"", "0", "0060", "0670", "0777", "1660", "0668", "rw", "0660 ", "-0660"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseSocketMode(bad).status())) << bad;
  }
}

TEST(ListenAddressTest, ASocketHasItsModeAndItsGroupFromTheStart) {
  ScratchDir dir;
  const std::string address = StrCat("unix:", dir.path("socket"));
  auto facts = [&] {
    struct stat found {};
    EXPECT_EQ(stat(dir.path("socket").c_str(), &found), 0);
    return found;
  };
  absl::StatusOr<ListeningSockets> usual = fusion::ListenOn(address);
  ASSERT_TRUE(usual.ok()) << usual.status();
  EXPECT_EQ(facts().st_mode & 07777, 0600u);
  usual = absl::CancelledError();
  const gid_t group = getegid();
  usual = fusion::ListenOn(address, {.mode = 0660, .group = StrCat(group)});
  ASSERT_TRUE(usual.ok()) << usual.status();
  EXPECT_EQ(facts().st_mode & 07777, 0660u);
  EXPECT_EQ(facts().st_gid, group);
  EXPECT_TRUE(CheckSocketGroup(StrCat(group)).ok());
  usual = absl::CancelledError();
  const absl::Status none =
      fusion::ListenOn(address, {.mode = 0660, .group = "no-such-group"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(none)) << none;
  EXPECT_FALSE(std::filesystem::exists(dir.path("socket"))) << "nothing is left that others get in";
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckSocketGroup("no-such-group")));
}

TEST(ListenAddressTest, NoFileOfAnotherKindIsRemoved) {
  ScratchDir dir;
  std::string path = dir.Write("precious", "text");
  EXPECT_TRUE(absl::IsFailedPrecondition(ClearUnixSocket(path)));
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_TRUE(absl::IsInvalidArgument(ClearUnixSocket(std::string(200, 'p'))));
}

}  // namespace
}  // namespace fusion
