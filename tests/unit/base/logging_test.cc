#include "core/base/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

class CollectingLogger final : public Logger {
 public:
  CollectingLogger() : Logger(LogLevel::kInfo) {}
  std::vector<std::string> lines;

 protected:
  void Write(LogLevel /*level*/, const std::string& members) override { lines.push_back(members); }
};

TEST(Logging, FieldsBecomeJsonOfTheirType) {
  CollectingLogger logger;
  std::string key = "12ab";
  logger.Info("served", {{"key", key}, {"ms", 1.5}, {"nodes", 12}, {"hit", true}, {"why", "x"}});
  EXPECT_THAT(logger.lines,
              testing::ElementsAre(
                  R"("event":"served","key":"12ab","ms":1.5,"nodes":12,"hit":true,"why":"x")"));
}

TEST(Logging, HostileTextStaysOneLineOfValidJson) {
  CollectingLogger logger;
  logger.Warning("odd", {{"text", std::string_view("a\"\n\xff\0b", 6)}});
  logger.Warning("odd", {{"text", "\xe5\xb1\xa4\xe2\x80\xae"}});
  ASSERT_EQ(logger.lines.size(), 2u);
  EXPECT_THAT(logger.lines[1], testing::HasSubstr("\xe5\xb1\xa4\\u202e"));
  EXPECT_EQ(logger.lines[0].find('\n'), std::string::npos);
  EXPECT_THAT(logger.lines[0], testing::HasSubstr(R"("a\"\n)"));
  EXPECT_THAT(logger.lines[0], testing::HasSubstr(R"(\u0000b)"));
}

TEST(Logging, LevelsBelowTheMinimumAreDropped) {
  CollectingLogger logger;
  logger.Debug("detail");
  EXPECT_TRUE(logger.lines.empty());
  logger.SetMinimum(LogLevel::kDebug);
  logger.Debug("detail");
  EXPECT_EQ(logger.lines.size(), 1u);
  Logger::Silent().Error("nobody hears this");
}

TEST(Logging, StderrLinesCarryTimeAndLevel) {
  testing::internal::CaptureStderr();
  MakeStderrLogger(LogLevel::kInfo)->Warning("disk_low", {{"free_bytes", 7}});
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      testing::MatchesRegex("\\{\"time\":\"20..-..-..T..:..:..\\....Z\",\"level\":\"warning\","
                            "\"event\":\"disk_low\",\"free_bytes\":7\\}\n"));
}

TEST(Logging, LevelNamesParse) {
  EXPECT_EQ(ParseLogLevel("warning").value(), LogLevel::kWarning);
  EXPECT_EQ(Message(ParseLogLevel("loud").status()),
            "log level \"loud\"; expected one of debug, info, warning, error, off");
}

}  // namespace
}  // namespace fusion
