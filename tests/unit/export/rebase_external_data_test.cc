#include "core/export/rebase_external_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/onnx/external_data.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class RebaseTest : public testing::Test {
 protected:
  RebaseTest() {
    for (const char* name : {"model/data", "other"}) {
      std::filesystem::create_directories(dir_.path(name));
    }
  }

  // A model with a weight in each file, the last one inside of a body.
  static onnx::ModelProto Model(const std::vector<std::string>& files) {
    TestModel m, body;
    for (size_t i = 0; i < files.size(); ++i) {
      TestModel& owner = i + 1 == files.size() ? body : m;
      owner.Reference(StrCat("w", i), {2});
      auto* tensor = owner.graph()->mutable_initializer(owner.graph()->initializer_size() - 1);
      tensor->mutable_external_data(0)->set_value(files[i]);
    }
    m.Node("If", {"c"}, {"y"}).AttrGraph("then_branch", body);
    return m.proto();
  }
  static std::vector<std::string> Files(const onnx::ModelProto& model) {
    std::vector<std::string> out;
    auto add = [&](const onnx::GraphProto& graph) {
      for (const auto& t : graph.initializer()) out.push_back(t.external_data(0).value());
    };
    add(model.graph());
    add(model.graph().node(0).attribute(0).g());
    return out;
  }
  absl::Status Rebase(const std::string& to, onnx::ModelProto* model) {
    return RebaseExternalData(dir_.path("model"), dir_.path(to), model);
  }

  ScratchDir dir_;
};

TEST_F(RebaseTest, InTheSameDirectoryNothingChanges) {
  onnx::ModelProto model = Model({"./w.bin", "data/../w", "fusiond:weight"});
  EXPECT_TRUE(Rebase("model/./fused.onnx", &model).ok());
  EXPECT_THAT(Files(model), ElementsAre("./w.bin", "data/../w", "fusiond:weight"));
}

TEST_F(RebaseTest, FromAboveFilesAreNamedWithTheirDirectory) {
  onnx::ModelProto model = Model({"./w.bin", "/absolute", "fusiond:weight", "data/v"});
  EXPECT_TRUE(Rebase("fused.onnx", &model).ok());
  EXPECT_THAT(Files(model),
              ElementsAre("model/w.bin", "/absolute", "fusiond:weight", "model/data/v"));
}

TEST_F(RebaseTest, FilesThatCannotBeNamedAreSaid) {
  onnx::ModelProto model = Model({"data/a", "w.bin"});
  const std::string before = model.SerializeAsString();
  EXPECT_THAT(std::string(Rebase("model/data/fused.onnx", &model).message()),
              AllOf(HasSubstr("tensor \"w1\" lies in"), HasSubstr("expected a file in")));
  EXPECT_FALSE(Rebase("other/fused.onnx", &model).ok());
  EXPECT_EQ(model.SerializeAsString(), before);
  onnx::ModelProto below = Model({"data/a", "data/b"});
  EXPECT_TRUE(Rebase("model/data/fused.onnx", &below).ok());
  EXPECT_THAT(Files(below), ElementsAre("a", "b"));
}

TEST_F(RebaseTest, WeightsAreNotOverwritten) {
  onnx::ModelProto model = Model({"w.bin"});
  EXPECT_THAT(std::string(Rebase("model/w.bin", &model).message()),
              HasSubstr("holds weights of the model: tensor \"w0\""));
}

TEST_F(RebaseTest, TheDirectoryMustExist) {
  onnx::ModelProto model = Model({});
  EXPECT_TRUE(absl::IsNotFound(Rebase("none/fused.onnx", &model)));
}

}  // namespace
}  // namespace fusion
