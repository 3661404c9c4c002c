// fusionctl run with a cache and without a service.
#include <filesystem>

#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class FusionctlResilientTest : public FusionctlTest {
 protected:
  Json RunAt(const std::string& server, std::vector<std::string> words) {
    words.insert(words.begin(), {"run", model_, "--server", server, "--json"});
    ProgramResult result = BareCtl(words);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
  const std::string model_ = Write("mlp", SmallMlp());
  const std::string away_ = "unix:/nobody/is/here";
  const std::string cache_ = dir_.path("cache");
};

double First(const Json& run) { return run["outputs"][0]["first"][0].get<double>(); }

TEST_F(FusionctlResilientTest, RunsFromServiceCacheAndOpByOp) {
  const Json service = RunAt(daemon_->address(), {"--cache", cache_});
  EXPECT_EQ(service["mode"], "fused (service)");
  EXPECT_EQ(service["reason"], "");
  EXPECT_GT(service["client"]["stored_files"], 1);
  const Json cached = RunAt(away_, {"--cache", cache_});
  EXPECT_EQ(cached["mode"], "fused (cache)");
  EXPECT_THAT(cached["reason"].get<std::string>(), HasSubstr(away_));
  EXPECT_EQ(cached["plan_key"], service["plan_key"]);
  EXPECT_EQ(cached["outputs"], service["outputs"]);
  const Json preferred = RunAt(away_, {"--cache", cache_, "--prefer-cache"});
  EXPECT_EQ(preferred["mode"], "fused (cache)");
  EXPECT_EQ(preferred["client"]["asked"], 0);
  const Json without = RunAt(away_, {"--fallback"});
  EXPECT_EQ(without["mode"], "op by op");
  EXPECT_EQ(without["client"]["fallbacks"], 1);
  EXPECT_NEAR(First(without), First(service), 1e-4);
  const Json second = RunAt(StrCat(away_, ",", daemon_->address()), {"--fallback"});
  EXPECT_EQ(second["mode"], "fused (service)");
}

TEST_F(FusionctlResilientTest, SaysModeAndReason) {
  ProgramResult run = BareCtl({"run", model_, "--server", away_, "--fallback", "--repeat", "3"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("op by op, random inputs\nreason: "));
  EXPECT_THAT(run.out, HasSubstr("median of 3"));
}

TEST_F(FusionctlResilientTest, WithoutFallbackThereIsAnError) {
  ProgramResult run =
      BareCtl({"run", model_, "--server", away_, "--cache", cache_, "--load-deadline", "5"});
  EXPECT_EQ(run.code, 4);
  ExpectOneErrorLine(run);
  EXPECT_THAT(run.err, HasSubstr(away_));
}

TEST_F(FusionctlResilientTest, ItsOwnFusiondMayBeMissing) {
  ProgramResult run = BareCtl({"run", model_, "--fusiond", "/no/fusiond", "--fallback"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("reason: no fusiond of its own: "));
}

TEST_F(FusionctlResilientTest, ErrorsNameTheOption) {
  std::filesystem::create_directory(cache_);
  std::filesystem::permissions(cache_, std::filesystem::perms::all);
  ProgramResult open = Ctl({"run", model_, "--cache", cache_});
  EXPECT_EQ(open.code, 3);
  EXPECT_THAT(open.err, StartsWith("fusionctl: --cache: cache directory"));
  EXPECT_EQ(Ctl({"run", model_, "--prefer-cache"}).code, 2);
  EXPECT_EQ(Ctl({"run", model_, "--fallback", "--compare"}).code, 2);
  EXPECT_EQ(Ctl({"run", model_, "--fallback", "--load-deadline", "0"}).code, 2);
  EXPECT_EQ(Ctl({"run", model_, "--cache", cache_, "--user-cache"}).code, 2);
}

}  // namespace
}  // namespace fusion
