#include "server/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CommandLine Parse(std::vector<const char*> args) {
  args.insert(args.begin(), "fusiond");
  return ParseCommandLine(static_cast<int>(args.size()), args.data());
}

TEST(ConfigTest, WithoutFlagsTheDefaultsHold) {
  CommandLine line = Parse({});
  ASSERT_FALSE(line.exit_code.has_value()) << line.text;
  EXPECT_THAT(line.config.listen, ElementsAre("127.0.0.1:50051"));
  EXPECT_EQ(line.config.admin, "");
  EXPECT_EQ(line.config.store_dir, "");
  EXPECT_GE(line.config.workers, 1);
  EXPECT_EQ(line.config.max_request_bytes, 32 << 20);
  EXPECT_EQ(line.config.drain_seconds, 2);
}

TEST(ConfigTest, EveryListenTakesOneAddress) {
  CommandLine line = Parse({"--listen", "127.0.0.1:0", "--listen", "unix:/tmp/s"});
  ASSERT_FALSE(line.exit_code.has_value()) << line.text;
  EXPECT_THAT(line.config.listen, ElementsAre("127.0.0.1:0", "unix:/tmp/s"));
  EXPECT_EQ(Parse({"--listen", "127.0.0.1:0", "unix:/tmp/s"}).exit_code, 2);
}

TEST(ConfigTest, WhatCannotWorkIsUsage) {
  ScratchDir dir;
  std::string file = dir.Write("a.conf", "listen = \"nowhere\"\n");
  EXPECT_EQ(Parse({"--config", file.c_str()}).exit_code, 2);
  EXPECT_FALSE(Parse({"--admin", ""}).exit_code.has_value()) << "none";
  CommandLine line = Parse({"--compiler", "/opt/g++"});
  EXPECT_EQ(line.exit_code, 2);
  EXPECT_THAT(line.text, HasSubstr("--compiler: \"/opt/g++\" is not one of --allow-compiler"));
  EXPECT_FALSE(
      Parse({"--compiler", "/opt/g++", "--allow-compiler", "/opt/g++"}).exit_code.has_value());
}

TEST(ConfigTest, BytesTakeSuffixes) {
  CommandLine line = Parse({"--store-limit", "10GiB", "--memory-limit", "1048576"});
  ASSERT_FALSE(line.exit_code.has_value()) << line.text;
  EXPECT_EQ(line.config.store_limit_bytes, int64_t{10} << 30);
  EXPECT_EQ(line.config.memory_limit_bytes, 1 << 20);
  line = Parse({"--store-limit", "0"});
  ASSERT_FALSE(line.exit_code.has_value()) << line.text;
  EXPECT_EQ(line.config.store_limit_bytes, INT64_MAX) << "none";
  EXPECT_EQ(Parse({"--store-limit", "-1"}).exit_code, 2);
}

TEST(ConfigTest, FlagsGoBeforeTheFile) {
  ScratchDir dir;
  std::string file = dir.Write("a.conf",
                               "# a comment\n"
                               "listen = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\n"
                               "store = \"/a b\"\n"
                               "workers = 3\n"
                               "drain-seconds = 0.5\n"
                               "rules-file = \"/etc/rules.textproto\"\n"
                               "exit-with-parent = true\n");
  CommandLine line = Parse({"--config", file.c_str(), "--workers", "5"});
  ASSERT_FALSE(line.exit_code.has_value()) << line.text;
  EXPECT_THAT(line.config.listen, ElementsAre("127.0.0.1:1", "127.0.0.1:2"));
  EXPECT_EQ(line.config.store_dir, "/a b");
  EXPECT_EQ(line.config.workers, 5);
  EXPECT_EQ(line.config.drain_seconds, 0.5);
  EXPECT_EQ(line.config.rules_file, "/etc/rules.textproto");
  EXPECT_TRUE(line.config.exit_with_parent);
}

TEST(ConfigTest, AQuotaOfStoredBytesWantsAStore) {
  CommandLine line = Parse({"--tenant-limit", "shop:stored=1GiB"});
  EXPECT_EQ(line.exit_code, 2);
  EXPECT_THAT(line.text,
              HasSubstr("--tenant-limit: stored= bounds what is on disk; expected --store"));
  EXPECT_EQ(Parse({"--tenant-limit", "*:stored=1GiB"}).exit_code, 2);
  EXPECT_FALSE(Parse({"--tenant-limit", "shop:rate=5"}).exit_code.has_value());
  EXPECT_FALSE(
      Parse({"--tenant-limit", "shop:stored=1GiB", "--store", "/s"}).exit_code.has_value());
}

TEST(ConfigTest, ASocketIsForItsOwnerOrForAGroup) {
  EXPECT_EQ(Parse({}).config.socket_access.mode, 0600u);
  CommandLine line = Parse({"--listen", "unix:/tmp/s", "--socket-group", "fusion"});
  ASSERT_FALSE(line.exit_code.has_value()) << line.text;
  EXPECT_EQ(line.config.socket_access.mode, 0660u);
  EXPECT_EQ(line.config.socket_access.group, "fusion");
  EXPECT_EQ(Parse({"--listen", "unix:/s", "--socket-mode", "0666"}).config.socket_access.mode,
            0666u);
  for (const auto& [args, message] : std::vector<std::pair<std::vector<const char*>, std::string>>{
           {{"--listen", "unix:/s", "--socket-mode", "rw"}, "--socket-mode: \"rw\" is no mode"},
           {{"--listen", "unix:/s", "--socket-mode", "0600", "--socket-group", "fusion"},
            "--socket-mode: 0600 keeps the group of --socket-group out"}}) {
    line = Parse(args);
    EXPECT_EQ(line.exit_code, 2);
    EXPECT_THAT(line.text, HasSubstr(message));
  }
}

TEST(ConfigTest, EverythingThatIsWrongIsSaid) {
  ScratchDir dir;
  const std::string file = dir.Write("a.conf",
                                     "workers = \"many\"\n"
                                     "drain-seconds = 1\n"
                                     "nonsense = 1\n"
                                     "tls-cert = \"/c\"\n");
  std::vector<const char*> args = {"--config", file.c_str(),      "--request-threads",
                                   "0",        "--grace-seconds", "-1",
                                   "stray",    "--compiler",      "/usr/bin/tcc"};
  CommandLine line = Parse(args);
  EXPECT_EQ(line.exit_code, 2);
  for (const std::string& problem :
       {std::string("--request-threads: "), std::string("--grace-seconds: "), std::string("stray"),
        file + ":1: --workers", file + ":3: unknown name nonsense"}) {
    EXPECT_THAT(line.text, HasSubstr(problem));
  }
  // Where only a look is wanted, what the rest would be is looked at too.
  args.push_back("--check-config");
  line = Parse(args);
  EXPECT_FALSE(line.exit_code.has_value());
  EXPECT_TRUE(line.check_only);
  EXPECT_EQ(line.config.drain_seconds, 1);
  EXPECT_EQ(line.config.compiler, "/usr/bin/tcc");
  std::string all;
  for (const std::string& problem : line.problems) all += problem + "\n";
  for (const std::string& problem :
       {std::string("--request-threads: "), std::string("--grace-seconds: "), std::string("stray"),
        file + ":1: --workers", file + ":3: unknown name nonsense",
        file + ":4: --tls-cert: expected --tls-key beside it",
        std::string("--compiler: \"/usr/bin/tcc\" is not one of")}) {
    EXPECT_THAT(all, HasSubstr(problem));
  }
  EXPECT_TRUE(Parse({"--check-config"}).problems.empty());
}

// A pipe would be waited for, a device read without end.
TEST(ConfigTest, AConfigFileIsARegularFile) {
  ScratchDir dir;
  const std::string pipe = dir.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [path, why] : std::vector<std::pair<std::string, std::string>>{
           {pipe, "is a pipe, not a regular file"},
           {"/dev/zero", "is a device, not a regular file"},
           {dir.path(""), "is a directory, not a regular file"},
           {dir.path("none"), "cannot be opened: "}}) {
    CommandLine line = Parse({"--config", path.c_str()});
    EXPECT_EQ(line.exit_code, 2) << path;
    EXPECT_THAT(line.text, testing::AllOf(HasSubstr("--config: file "), HasSubstr(why)));
    line = Parse({"--config", path.c_str(), "--check-config"});
    ASSERT_EQ(line.problems.size(), 1U) << path;
    EXPECT_THAT(line.problems[0], HasSubstr(why));
  }
}

TEST(ConfigTest, WordsOfAFileDoNothingToATerminal) {
  ScratchDir dir;
  const std::string file = dir.Write("a.conf", "\x1b[31mred = 1\n");
  const CommandLine line = Parse({"--config", file.c_str()});
  EXPECT_EQ(line.exit_code, 2);
  EXPECT_THAT(line.text, testing::AllOf(HasSubstr("\\x1b[31m"), testing::Not(HasSubstr("\x1b"))));
}

TEST(ConfigTest, NaNIsNoNumber) {
  for (const char* option :
       {"--call-seconds", "--drain-seconds", "--grace-seconds", "--abandoned-build-seconds",
        "--failure-ttl-seconds", "--compile-seconds", "--connection-idle-seconds"}) {
    const CommandLine line = Parse({option, "nan"});
    EXPECT_EQ(line.exit_code, 2) << option;
    EXPECT_THAT(line.text, HasSubstr("expected a number, got \"nan\""));
  }
}

TEST(ConfigTest, LevelsOfTheSearchAreThoseThatThereAre) {
  EXPECT_EQ(Parse({}).config.max_opt_level, kMaxOptLevel);
  EXPECT_EQ(Parse({"--max-opt-level", "0"}).config.max_opt_level, 0);
  EXPECT_EQ(Parse({"--max-opt-level", "4"}).exit_code, 2);
}

TEST(ConfigTest, AskingIsNoError) {
  EXPECT_EQ(Parse({"--help"}).exit_code, 0);
  EXPECT_THAT(Parse({"--help"}).text, HasSubstr("--drain-seconds"));
  EXPECT_EQ(Parse({"--version"}).exit_code, 0);
}

}  // namespace
}  // namespace fusion
