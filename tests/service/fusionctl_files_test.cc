// What fusionctl does with files that are hostile or odd, and with initialisers that are inputs
// too.
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>

#include "client/fused_model.h"
#include "core/base/sanitizer.h"
#include "core/tensor/npy.h"
#include "tests/service/fusionctl_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

HostTensor Values(const Dims& dims, std::initializer_list<double> values) {
  HostTensor out(DType::kF32, dims);
  int64_t i = 0;
  for (double value : values) out.SetDouble(i++, value);
  return out;
}

class FilesTest : public FusionctlTest {
 protected:
  // y = x w + b: w [2,2] and b [2] may be overridden, and are before x among the inputs.
  std::string WriteModel() {
    TestModel m;
    m.Input("w", {2, 2}).Input("x", {1, 2}).Input("b", {2});
    m.Initializer("w", Values({2, 2}, {1, 0, 0, 1})).Initializer("b", Values({2}, {0, 0}));
    m.Node("MatMul", {"x", "w"}, {"p"}).Node("Add", {"p", "b"}, {"y"}).Output("y", {1, 2});
    m.proto().set_ir_version(8);
    return Write(m.proto());
  }
  std::string Save(const std::string& name, const NamedTensor& tensor) {
    std::filesystem::create_directories(std::filesystem::path(dir_.path(name)).parent_path());
    EXPECT_TRUE(SaveTensorFile(dir_.path(name), tensor).ok());
    return dir_.path(name);
  }
  // By Python, which writes every kind of archive.
  std::string Python(const std::string& name, const std::string& code) {
    const std::string path = dir_.path(name);
    const ProgramResult ran = RunProgram({"/usr/bin/python3", "-c", code, path});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return path;
  }
  static std::vector<double> Outputs(const Json& run) {
    return run["outputs"][0]["first"].get<std::vector<double>>();
  }

  const NamedTensor x_{"x", Values({1, 2}, {1, 2})};
  const NamedTensor w_{"w", Values({2, 2}, {0, 1, 1, 0})};
  const NamedTensor b_{"b", Values({2}, {10, 20})};
};

TEST_F(FilesTest, InputsOverrideInitializers) {
  const std::string model = WriteModel();
  const std::string x = "x=" + Save("x.npy", x_), w = "w=" + Save("w.npy", w_);
  EXPECT_THAT(Outputs(CtlJson({"run", model, "--input", x})), ElementsAre(1, 2));
  EXPECT_THAT(Outputs(CtlJson({"run", model, "--input", x, "--input", w})), ElementsAre(2, 1));
  EXPECT_THAT(Outputs(CtlJson({"run", model, "--input", x, "--input", "b=" + Save("b.pb", b_)})),
              ElementsAre(11, 22));
  // An input that nobody gives has the value of the model.
  EXPECT_THAT(Outputs(CtlJson({"run", model, "--input", x, "--as-input", "w"})), ElementsAre(1, 2));
  EXPECT_EQ(CtlJson({"verify", model, "--input", x, "--input", w})["pass"], true);
  EXPECT_EQ(CtlJson({"bench", model, "--input", w, "--pairs", "2"}).count("error"), 0u);
  // It is another plan, whatever the value: nothing of it is folded.
  const Json constant = CtlJson({"plan", model});
  const Json planned = CtlJson({"plan", model, "--as-input", "w"});
  EXPECT_NE(planned["plan_key"], constant["plan_key"]);
  EXPECT_EQ(CtlJson({"run", model, "--input", w})["plan_key"], planned["plan_key"]);
}

TEST_F(FilesTest, DataOverridesInitializersByNameAndByNumber) {
  const std::string model = WriteModel();
  // The second set has no w: there it is what the model says.
  Save("case/test_data_set_0/input_0.pb", x_);
  Save("case/test_data_set_0/input_1.pb", w_);
  Save("case/test_data_set_0/output_0.pb", {"y", Values({1, 2}, {2, 1})});
  Save("case/test_data_set_1/input_0.pb", x_);
  Save("case/test_data_set_1/output_0.pb", {"y", Values({1, 2}, {1, 2})});
  Json verified = CtlJson({"verify", model, "--data", dir_.path("case")});
  EXPECT_EQ(verified["pass"], true) << verified;
  EXPECT_EQ(verified["outputs"].size(), 2u);
  // Without names, one for every graph input in its order.
  Save("all/input_0.npy", w_);
  Save("all/input_1.npy", x_);
  Save("all/input_2.npy", b_);
  EXPECT_THAT(Outputs(CtlJson({"run", model, "--data", dir_.path("all")})), ElementsAre(12, 21));
  Save("one/input_0.npy", x_);
  EXPECT_THAT(Outputs(CtlJson({"run", model, "--data", dir_.path("one")})), ElementsAre(1, 2));
  const std::string named = Python("named.npz", R"(
import sys, zipfile, struct
def npy(shape, values):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %s, }\n" % (shape,)).encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<%df" % len(values), *values)
with zipfile.ZipFile(sys.argv[1], "w") as out:
    out.writestr("b.npy", npy((2,), [10, 20]))
    out.writestr("x.npy", npy((1, 2), [1, 2]))
)");
  EXPECT_THAT(Outputs(CtlJson({"run", model, "--data", named})), ElementsAre(11, 22));
}

TEST_F(FilesTest, WhatFitsNothingIsAnError) {
  const std::string model = WriteModel();
  const std::string w = Save("w.npy", w_);
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"run", model});
    const ProgramResult result = Ctl(words);
    EXPECT_EQ(result.code, 3) << result.out;
    ExpectOneErrorLine(result);
    return result.err;
  };
  EXPECT_THAT(refused({"--input", "v=" + w}),
              AllOf(HasSubstr("no such input; inputs: \"x\""),
                    HasSubstr("initialisers that can be overridden: \"w\", \"b\"")));
  EXPECT_THAT(refused({"--as-input", "x"}), HasSubstr("--as-input: input \"x\" is no initialiser"));
  EXPECT_THAT(refused({"--as-input", "v"}), HasSubstr("has no initialiser \"v\""));
  EXPECT_THAT(refused({"--input", "b=" + w}), HasSubstr("f32[2,2], the model declares [2]"));
  Save("more/input_0.pb", x_);
  Save("more/input_1.pb", {"other", w_.value});
  EXPECT_THAT(refused({"--data", dir_.path("more")}), HasSubstr("has input_1"));
  Save("gap/input_0.pb", x_);
  Save("gap/input_2.pb", x_);
  EXPECT_THAT(refused({"--data", dir_.path("gap")}), HasSubstr("has input_2.pb but no input_1.pb"));
  Save("stray/input_0.pb", x_);
  Save("stray/weights.npy", w_);
  EXPECT_THAT(refused({"--data", dir_.path("stray")}), HasSubstr("\"weights.npy\", which is no"));
  Save("outputs/input_0.pb", x_);
  Save("outputs/output_0.pb", x_);
  Save("outputs/output_1.pb", w_);
  EXPECT_THAT(refused({"--data", dir_.path("outputs")}), HasSubstr("has output_1"));
  TestModel old;
  old.Input("x", {2}).Input("w", {2}).Initializer("w", Values({2}, {1, 1}));
  old.Node("Add", {"x", "w"}, {"y"}).Output("y");
  old.proto().set_ir_version(3);
  const ProgramResult constant =
      Ctl({"run", Write(old.proto()), "--input", "w=" + Save("two.npy", b_)});
  EXPECT_EQ(constant.code, 3);
  EXPECT_THAT(constant.err, HasSubstr("the model has IR version 3, expected 4 or later"));
}

// Runs a program that sees a file system of 64 KiB at `at`, with the file m.onnx of `model` in it.
// There the commands `how` run before. Its code is 77 if nothing can be mounted here.
ProgramResult WithSmallDisk(const std::string& at, const std::string& model, const std::string& how,
                            const std::vector<std::string>& words) {
  const std::string script =
      StrCat("exec 3< '", model, "'; mount -t tmpfs -o size=64k tmpfs '", at,
             "' 2>/dev/null || exit 77; cd '", at, "'; cat <&3 > m.onnx; ", how, "; exec \"$@\"");
  std::vector<std::string> all = {"/usr/bin/unshare", "-m", "/bin/sh", "-c", script, "sh"};
  all.insert(all.end(), words.begin(), words.end());
  ProgramResult out = RunProgram(all);
  if (out.err.starts_with("unshare:")) out.code = 77;
  return out;
}

TEST_F(FilesTest, AFullDiskIsNotTheFaultOfTheInput) {
  const std::string model = WriteModel();
  const ProgramResult missing =
      Ctl({"plan", model, "--plan-only", "--write-lock", "/nowhere/lock"});
  EXPECT_EQ(missing.code, 3) << "a wrong name is: " << missing.err;

  const std::string disk = dir_.path("disk");
  std::filesystem::create_directory(disk);
  const std::string fill = "head -c 65536 /dev/zero > fill 2>/dev/null";
  const std::string read_only = "mount -o remount,ro .";
  auto run = [&](const std::string& how, std::vector<std::string> words) {
    words.insert(words.begin(), FUSIONCTL);
    return WithSmallDisk(disk, model, how, words);
  };
  const std::string server = daemon_->address();
  if (run(fill, {"--version"}).code == 77) GTEST_SKIP() << "no file systems can be mounted here";
  struct Case {
    std::string how;
    std::vector<std::string> words;
    std::string said;
  };
  const std::string out = disk + "/out";
  const std::string full_text = "No space left on device", ro_text = "Read-only file system";
  for (const Case& c : std::vector<Case>{
           {fill, {"run", model, "--server", server, "--out", out}, full_text},
           {read_only, {"run", model, "--server", server, "--out", out}, ro_text},
           {fill,
            {"plan", model, "--plan-only", "--server", server, "--write-lock", out},
            full_text},
           {fill, {"run", model, "--server", server, "--dump-tensors", out}, full_text},
           {fill, {"repro", model, "--server", server, "--out", out}, full_text},
           {fill, {"export", model, "--fused", "--server", server, "--out", out}, full_text},
           {read_only, {"export", model, "--fused", "--server", server, "--out", out}, ro_text},
           {read_only, {"run", model, "--server", server, "--cache", out}, ro_text},
           {read_only, {"run", model, "--store", out}, ro_text}}) {
    const ProgramResult got = run(c.how, c.words);
    const std::string told = StrCat(StrJoin(c.words, " "), " after ", c.how, ": ", got.err);
    EXPECT_EQ(got.code, 4) << told;
    ExpectOneErrorLine(got);
    EXPECT_THAT(got.err, AllOf(HasSubstr(disk), HasSubstr(c.said))) << told;
  }
  // The scratch directory of the fusiond that fusionctl starts.
  for (const auto& [how, said] :
       {std::pair(fill, std::string("no space left in directory \"/tmp/fusionctl-")),
        std::pair(read_only, std::string("creating a directory in \"/tmp\": Read-only"))}) {
    const ProgramResult got = WithSmallDisk("/tmp", model, how, {FUSIONCTL, "plan", "m.onnx"});
    EXPECT_EQ(got.code, 4) << got.err;
    EXPECT_THAT(got.err, HasSubstr(said));
  }
}

// ONNX's cases have files of shapes too: those of --fix are no inputs of the run, but they agree.
TEST_F(FilesTest, DataMayHaveWhatIsFixed) {
  TestModel m;
  m.Input("shape", {2}, DType::kI64).Input("x", {2, 3});
  m.Node("Reshape", {"x", "shape"}, {"r"}).Node("Relu", {"r"}, {"y"}).Output("y");
  m.proto().set_ir_version(8);
  const std::string model = Write(m.proto());
  const NamedTensor shape{"shape", HostTensor::FromValues<int64_t>(DType::kI64, {2}, {3, 2})};
  const NamedTensor x{"x", Values({2, 3}, {0, 1, 2, 3, 4, 5})};
  const std::string fixed = "shape=" + Save("shape.npy", shape);
  for (const char* suffix : {".pb", ".npy"}) {  // by name and by number
    const std::string all = StrCat("all", suffix), without = StrCat("without", suffix);
    Save(StrCat(all, "/input_0", suffix), shape);
    Save(StrCat(all, "/input_1", suffix), x);
    Save(StrCat(without, "/input_0", suffix), x);
    for (const std::string& data : {all, without}) {
      EXPECT_THAT(Outputs(CtlJson({"run", model, "--fix", fixed, "--data", dir_.path(data)})),
                  ElementsAre(0, 1, 2, 3, 4, 5))
          << data;
    }
  }
  Save("other/input_0.pb", {"shape", HostTensor::FromValues<int64_t>(DType::kI64, {2}, {6, 1})});
  Save("other/input_1.pb", x);
  const ProgramResult other = Ctl({"run", model, "--fix", fixed, "--data", dir_.path("other")});
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(other.err, HasSubstr("is not what --fix says of it"));
  const ProgramResult twice = Ctl({"run", model, "--fix", fixed, "--input", fixed});
  EXPECT_EQ(twice.code, 3);
  EXPECT_THAT(twice.err, HasSubstr("--input: input \"shape\" has the value of --fix"));
  // So it is with an initialiser.
  const std::string weights = WriteModel();
  const std::string w = "w=" + Save("w.npy", w_);
  Save("named/input_0.pb", x_);
  Save("named/input_1.pb", w_);
  EXPECT_THAT(Outputs(CtlJson({"run", weights, "--fix", w, "--data", dir_.path("named")})),
              ElementsAre(2, 1));
  EXPECT_EQ(Ctl({"run", weights, "--fix", w, "--as-input", "w"}).code, 3);
}

// What a run may override and a plan must know: the message says how to go on, and it works.
TEST_F(FilesTest, OverriddenParametersAreFixed) {
  TestModel m;
  m.Input("x", {2, 3}).Input("k", {1}, DType::kI64);
  m.Initializer("k", HostTensor::FromValues<int64_t>(DType::kI64, {1}, {2}));
  m.Node("TopK", {"x", "k"}, {"y", "i"}, "top").Output("y").Output("i", {}, DType::kI64);
  m.proto().set_ir_version(8);
  const std::string model = Write(m.proto());
  Save("data/input_0.pb", {"x", Values({2, 3}, {0, 1, 2, 3, 4, 5})});
  const std::string k =
      Save("data/input_1.pb", {"k", HostTensor::FromValues<int64_t>(DType::kI64, {1}, {1})});
  for (const char* command : {"run", "verify"}) {
    for (const std::vector<std::string>& how :
         {std::vector<std::string>{"--data", dir_.path("data")}, {"--input", "k=" + k}}) {
      const ProgramResult refused = Ctl({command, model, how[0], how[1]});
      EXPECT_EQ(refused.code, 3);
      EXPECT_THAT(refused.err,
                  AllOf(HasSubstr("node \"top\" (TopK): input 1 \"k\" (k) is a graph input"),
                        HasSubstr("fusionctl: --fix NAME=VALUE")));
    }
  }
  EXPECT_THAT(Outputs(CtlJson({"run", model, "--data", dir_.path("data"), "--fix", "k=" + k})),
              ElementsAre(2, 5));
}

// Two values of one name are an error, not a choice.
TEST_F(FilesTest, NothingIsGivenTwice) {
  TestModel m;
  m.Input("x", {2}).Input("z", {2}).Node("Add", {"x", "z"}, {"y"}).Output("y", {2});
  const std::string model = Write(m.proto());
  const NamedTensor x{"x", Values({2}, {1, 2})};
  const std::string first = Save("data/input_0.pb", x), second = Save("data/input_1.pb", x);
  const ProgramResult set = Ctl({"run", model, "--data", dir_.path("data")});
  EXPECT_EQ(set.code, 3);
  EXPECT_THAT(set.err, AllOf(HasSubstr(first), HasSubstr(second), HasSubstr("both hold \"x\"")));
  const ProgramResult input =
      Ctl({"run", model, "--input", "x=" + first, "--input", "x=" + second});
  EXPECT_EQ(input.code, 2);
  EXPECT_THAT(input.err, AllOf(HasSubstr("--input: input \"x\" is both"), HasSubstr(second)));
  const ProgramResult fix = Ctl({"run", model, "--fix", "x=1", "--fix", "x=2"});
  EXPECT_EQ(fix.code, 2);
  EXPECT_THAT(fix.err, HasSubstr("--fix: input \"x\" is both \"1\" and \"2\""));
  const std::string arrays =
      Python("twice.npz",
             "import io, struct, sys, zipfile\n"
             "head = \"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\\n\"\n"
             "npy = b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', len(head)) + head.encode() + "
             "bytes(8)\n"
             "with zipfile.ZipFile(sys.argv[1], 'w') as out:\n"
             "  for name in ('x', 'z', 'input_1'): out.writestr(name + '.npy', npy)\n");
  const ProgramResult twice = Ctl({"run", model, "--data", arrays});
  EXPECT_EQ(twice.code, 3);
  EXPECT_THAT(twice.err, HasSubstr("two arrays for input \"z\": \"z\" and \"input_1\""));
}

TEST_F(FilesTest, TheLibraryOverridesThemToo) {
  const std::string model = WriteModel();
  auto client = Client::Connect(daemon_->address());
  ASSERT_TRUE(client.ok()) << client.status();
  FusedModelOptions options;
  options.overridden = {"b"};
  auto loaded = FusedModel::Load(**client, model, options);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT((*loaded)->inputs(), ElementsAre("x", "b"));
  auto outputs = (*loaded)->Run({{"x", x_.value}, {"b", b_.value}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].GetDouble(1), 22);
  EXPECT_FALSE((*loaded)->Run({{"x", x_.value}}).ok());
  options.overridden = {"nothing"};
  EXPECT_THAT(std::string(Message(FusedModel::Load(**client, model, options).status())),
              HasSubstr("the model has no initialiser \"nothing\""));
}

TEST_F(FilesTest, ReadsArraysInEveryOrder) {
  TestModel m;
  m.Input("x", {2, 3}).Node("Identity", {"x"}, {"y"}).Output("y");
  const std::string model = Write(m.proto());
  const char* write = R"(
import sys, struct
order, end = sys.argv[1].rsplit("/", 1)[1][:2]
head = ("{'descr': '%sf4', 'fortran_order': %s, 'shape': (2, 3), }\n" % ("<>"[end == "b"], order == "f")).encode()
values = [0, 3, 1, 4, 2, 5] if order == "f" else [0, 1, 2, 3, 4, 5]
open(sys.argv[1], "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
                              + struct.pack("<>"[end == "b"] + "6f", *values))
)";
  for (const char* name : {"cl.npy", "cb.npy", "fl.npy", "fb.npy"}) {
    EXPECT_THAT(Outputs(CtlJson({"run", model, "--input", "x=" + Python(name, write)})),
                ElementsAre(0, 1, 2, 3, 4, 5))
        << name;
  }
}

// 32 GiB of zeros in 32 MiB and less: nothing of it is unpacked, whatever the archive says.
TEST_F(FilesTest, ArraysOfArchivesAreReadByTheirHeadersFirst) {
  const std::string bomb = Python("bomb.npz", R"(
import sys, zipfile, struct
head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (8589934592,), }\n"
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as out:
    with out.open("x.npy", "w", force_zip64=True) as to:
        to.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
        for _ in range(64): to.write(bytes(1 << 20))
)");
  TestModel fixed;
  fixed.Input("x", {4}).Node("Relu", {"x"}, {"y"}).Output("y");
  const ProgramResult refused = Ctl({"run", Write(fixed.proto()), "--data", bomb});
  EXPECT_EQ(refused.code, 3);
  ExpectOneErrorLine(refused);
  EXPECT_THAT(refused.err, HasSubstr("is f32[8589934592], the model declares [4]"));
  // Where any length would do, the file is too small for it.
  TestModel open;
  open.Input("x", {"N"}).Node("Relu", {"x"}, {"y"}).Output("y");
  const ProgramResult shortage = Ctl({"run", Write(open.proto()), "--data", bomb});
  EXPECT_EQ(shortage.code, 3);
  ExpectOneErrorLine(shortage);
  EXPECT_THAT(shortage.err, HasSubstr("claims f32[8589934592], 34359738368 bytes; a file of "));
}

// Every place of the command line that takes a file to read.
struct FilePlace {
  std::vector<std::string> words;  // "%": the file; "MODEL": a good model
  std::string suffix;
};
std::vector<FilePlace> FilePlaces() {
  return {{{"plan", "%"}, ".onnx"},
          {{"run", "%"}, ".onnx"},
          {{"show", "%", "graph"}, ".onnx"},
          {{"export", "%", "--fused", "--out", "OUT"}, ".onnx"},
          {{"explain", "%"}, ".onnx"},
          {{"explain", "%"}, ".saved"},
          {{"diff", "%", "MODEL"}, ".onnx"},
          {{"report", "%"}, ".onnx"},
          {{"repro", "%", "--out", "OUT"}, ".onnx"},
          {{"repro", "--replay", "%"}, ".tar.gz"},
          {{"run", "MODEL", "--input", "x=%"}, ".npy"},
          {{"run", "MODEL", "--input", "x=%"}, ".pb"},
          {{"run", "MODEL", "--data", "%"}, ".npz"},
          {{"plan", "MODEL", "--fix", "x=%"}, ".npy"},
          {{"plan", "MODEL", "--rules", "%"}, ".rules"},
          {{"plan", "MODEL", "--custom-ops", "%"}, ".ops"},
          {{"plan", "MODEL", "--lock", "%"}, ".lock"},
          {{"plan", "MODEL", "--ca", "%"}, ".pem"},
          {{"plan", "MODEL", "--token-file", "%"}, ".token"},
          {{"plan", "MODEL", "--verify-key", "%"}, ".pem"},
          {{"store", "import", "--from", "%", "--store", "STORE"}, ".archive"}};
}

TEST_F(FilesTest, OnlyRegularFilesOfAPossibleLengthAreRead) {
  TestModel m;
  m.Input("x", {4}).Node("Relu", {"x"}, {"y"}).Output("y");
  const std::string model = Write(m.proto());
  struct Odd {
    std::string kind;
    std::string words;  // of the message
    std::function<void(const std::string& path)> make;
  };
  const std::vector<Odd> odd = {
      {"pipe", "is a pipe, not a regular file",
       [](const std::string& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); }},
      {"device", "is a device, not a regular file",
       [](const std::string& path) { std::filesystem::create_symlink("/dev/zero", path); }},
      {"socket", "is a socket, not a regular file",
       [](const std::string& path) { ASSERT_EQ(mknod(path.c_str(), S_IFSOCK | 0600, 0), 0); }},
      {"huge", "",
       [](const std::string& path) {
         std::ofstream(path) << "x";
         std::filesystem::resize_file(path, uintmax_t{1} << 42);
       }},
      {"none", "No such file", [](const std::string& path) { std::filesystem::remove(path); }}};
  for (const FilePlace& place : FilePlaces()) {
    for (const Odd& one : odd) {
      const std::string path = dir_.path(one.kind + place.suffix);
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
      one.make(path);
      std::vector<std::string> words;
      for (std::string word : place.words) {
        if (word == "MODEL") word = model;
        if (word == "OUT") word = dir_.path("out");
        if (word == "STORE") word = dir_.path("store");
        const size_t at = word.find('%');
        words.push_back(at == std::string::npos ? word : word.replace(at, 1, path));
      }
      const bool own = words.back() == dir_.path("store");
      const ProgramResult result = own ? BareCtl(words) : Ctl(words);
      const std::string what = StrCat(StrJoin(words, " "), "\n", result.err);
      // A store to import is read as it comes: only the server can say that it is none.
      EXPECT_EQ(result.code, 3) << what;
      ExpectOneErrorLine(result);
      if (one.kind != "none") {
        EXPECT_THAT(result.err, HasSubstr(one.words)) << what;
      }
      std::filesystem::remove(path, ignored);
    }
  }
}

// Every place of the command line that takes a file to write.
TEST_F(FilesTest, OnlyRegularFilesAreWritten) {
  TestModel m;
  m.Input("x", {4}).Node("Relu", {"x"}, {"y"}).Output("y");
  const std::string model = Write(m.proto());
  const std::vector<std::vector<std::string>> places = {
      {"plan", model, "--plan-only", "--write-lock"},
      {"run", model, "--trace"},
      {"explain", model, "--dot"},
      {"explain", model, "--svg"},
      {"explain", model, "--save"},
      {"report", "--html"},
      {"export", model, "--fused", "--plan-only", "--out"},
      {"repro", model, "--out"},
      {"store", "export", "--out"},
      {"token", "ci", "--out"}};
  const std::string pipe = dir_.path("pipe"), device = dir_.path("device");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", device);
  for (const std::vector<std::string>& place : places) {
    for (const auto& [path, kind] : {std::pair{pipe, "a pipe"}, std::pair{device, "a device"},
                                     std::pair{dir_.path(), "a directory"}}) {
      if (path == device && place.back() != "--out") continue;  // takes what is written to it
      std::vector<std::string> words = place;
      words.push_back(path);
      const ProgramResult result = place[0] == "token" ? BareCtl(words) : Ctl(words);
      const std::string what = StrCat(StrJoin(words, " "), "\n", result.err);
      EXPECT_EQ(result.code, 3) << what;
      ExpectOneErrorLine(result);
      EXPECT_THAT(result.err, HasSubstr(StrCat(place.back(), ": file \"", path, "\": is ", kind,
                                               ", not a regular file")))
          << what;
    }
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  const ProgramResult shown = Ctl({"explain", model, "--dot", "/dev/stdout"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("digraph"));
  EXPECT_EQ(Ctl({"explain", model, "--dot", "/dev/null"}).code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(device));
}

// Whatever has no memory, it is said in one line, and no signal ends the program.
TEST_F(FilesTest, WithoutMemoryItSaysSoAndExitsWithFive) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have an allocator of their own";
  TestModel m;
  m.Input("x", {1 << 18}).Initializer("c", HostTensor(DType::kF32, {1 << 18}));
  m.Node("Add", {"x", "c"}, {"y"}).Node("Relu", {"y"}, {"z"}).Output("z");
  const std::string model = Write(m.proto());
  const std::string x = Save("x.npy", {"x", HostTensor(DType::kF32, {1 << 18})});
  const std::vector<std::vector<std::string>> commands = {
      {"verify", model},
      {"run", model, "--input", "x=" + x, "--out", dir_.path("out")},
      {"bench", model, "--pairs", "1", "--no-report"},
      {"run", model, "--compare"},
      {"plan", model},
      {"export", model, "--fused", "--out", dir_.path("fused.onnx")}};
  int ended_for_memory = 0, ran = 0;
  for (const std::vector<std::string>& command : commands) {
    for (int kib = 32; kib <= 8192; kib *= 4) {
      std::vector<std::string> words = {"/usr/bin/env", StrCat("LD_PRELOAD=", FUSION_MEMORY_SHIM),
                                        StrCat("FUSION_BLOCK_LIMIT=", kib * 1024), FUSIONCTL};
      words.insert(words.end(), command.begin(), command.end());
      words.insert(words.end(), {"--server", daemon_->address()});
      const ProgramResult result = RunProgram(words);
      EXPECT_THAT(result.code, AnyOf(0, 5)) << command[0] << ", " << kib << " KiB: " << result.err;
      if (result.code == 5) ExpectOneErrorLine(result);
      ended_for_memory += result.code == 5 ? 1 : 0;
      ran += result.code == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(ended_for_memory, 8);
  EXPECT_GT(ran, 6);
}

// A limit of addresses ends libraries that start threads in their own ways; the fusiond that it
// starts has the same limit.
TEST_F(FilesTest, LimitsOfAddressesEndItInTheSameWay) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have reserved more addresses than that";
  TestModel m;
  m.Input("x", {64}).Node("Relu", {"x"}, {"y"}).Output("y");
  const std::string model = Write(m.proto());
  int ended_for_memory = 0;
  for (const bool is_own : {false, true}) {
    for (int64_t mib : {100, 150, 250, 400, 700, 900, 950, 1000, 1025, 1050, 1075, 1100, 1300}) {
      if (!is_own && mib > 400) break;
      std::vector<std::string> words = {"/usr/bin/prlimit", StrCat("--as=", mib << 20), FUSIONCTL,
                                        "run", model};
      if (!is_own) words.insert(words.end(), {"--server", daemon_->address()});
      const ProgramResult result = RunProgram(words);
      EXPECT_THAT(result.code, AnyOf(0, 5)) << mib << " MiB: " << result.err;
      if (result.code == 5) ExpectOneErrorLine(result);
      ended_for_memory += result.code == 5 ? 1 : 0;
    }
  }
  EXPECT_GT(ended_for_memory, 3);
}

TEST_F(FilesTest, WithoutMemoryJsonSaysSoToo) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have an allocator of their own";
  TestModel m;
  m.Input("x", {1 << 18}).Node("Relu", {"x"}, {"y"}).Output("y");
  const ProgramResult result = RunProgram(
      {"/usr/bin/env", StrCat("LD_PRELOAD=", FUSION_MEMORY_SHIM), "FUSION_BLOCK_LIMIT=500000",
       FUSIONCTL, "verify", Write(m.proto()), "--json", "--server", daemon_->address()});
  EXPECT_EQ(result.code, 5) << result.err;
  const Json error = Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(error["error"]["code"], "RESOURCE_EXHAUSTED") << result.out;
}

}  // namespace
}  // namespace fusion
