// libFuzzer target: rules in protobuf's text format, with the conditions inside. What is read must
// come back from the wire as it was.
#include "core/wire/options/rules.h"
#include "fusion/v1/rules.pb.h"
#include "tests/fuzz/require.h"

namespace {

constexpr std::string_view kSeedText = R"rules(rules {
  name: "attention"
  pattern {
    nodes { id: "scores" ops: "MatMul" }
    nodes { id: "softmax" ops: "Softmax" }
    edges { from: "scores" to: "softmax" through: ["Mul", "Div", "Add"] input: 0 }
  }
  when: "dim(scores.output, -1) <= 512 && !(speedup < 1.5e-3)"
  when: "l1_usage < 0.8 * l1_capacity || rank(softmax.input) == 4"
  force {}
}
rules { name: "no" pattern { nodes { id: "a" ops: "*" } } forbid {} }
rules { name: "few" pattern { nodes { id: "a" ops: "Relu" } } bias { factor: 0.8 } }
)rules";

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string corpus = fusion::SeedsDirectory(*argc, *argv);
  if (corpus.empty()) return 0;
  fusion::WriteSeed(corpus, "rules", kSeedText);
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<fusion::Rules> rules = fusion::ParseRulesText(text, "rules");
  if (!rules.ok()) {
    fusion::RequireBlamesText(rules.status());
    return 0;
  }
  fusion::v1::FusionRules wire;
  fusion::EncodeRules(*rules, &wire);
  absl::StatusOr<fusion::Rules> again = fusion::DecodeRules(wire);
  fusion::Require(again.ok(), "rules do not come back from the wire", again.status());
  fusion::Require(fusion::KeyText(*again) == fusion::KeyText(*rules), "rules come back as others");
  return 0;
}
