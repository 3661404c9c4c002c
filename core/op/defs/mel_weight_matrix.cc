#include <cmath>

#include "core/base/threads/job.h"
#include "core/op/indexed/signal.h"

namespace fusion {

namespace {

// Elements of a matrix that is written down.
constexpr int64_t kMaxMelElements = int64_t{1} << 24;

struct MelScale {
  int64_t bins = 0;   // of the mel scale
  int64_t lines = 0;  // of the spectrogram: dft_length / 2 + 1
  /// Spectrogram line at which each filter begins; two more than there are bins.
  std::vector<int64_t> edges;
};

double MelOfHertz(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double HertzOfMel(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

absl::StatusOr<MelScale> MelScaleOf(const AttrMap& attrs) {
  const int64_t bins = attrs.Int("num_mel_bins", 0);
  const int64_t dft_length = attrs.Int("dft_length", 0);
  const int64_t sample_rate = attrs.Int("sample_rate", 0);
  const double lower = attrs.Float("lower_edge_hertz", 0);
  const double upper = attrs.Float("upper_edge_hertz", 0);
  if (bins < 0 || dft_length < 0 || sample_rate < 1) {
    return InvalidArgument("num_mel_bins, dft_length and sample_rate are ", bins, ", ", dft_length,
                           " and ", sample_rate, ", expected at least 0, 0 and 1");
  }
  if (!(lower >= 0 && upper >= lower && std::isfinite(upper))) {
    return InvalidArgument("lower_edge_hertz and upper_edge_hertz are ", lower, " and ", upper,
                           ", expected 0 <= lower <= upper");
  }
  MelScale out{.bins = bins, .lines = dft_length / 2 + 1, .edges = {}};
  if (bins > kMaxMelElements || out.lines > kMaxMelElements || bins * out.lines > kMaxMelElements) {
    return Unimplemented("a matrix of ", out.lines, " times ", bins, " elements; at most ",
                         kMaxMelElements, " are supported");
  }
  const double first = MelOfHertz(lower);
  const double step = (MelOfHertz(upper) - first) / static_cast<double>(bins + 2);
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = HertzOfMel(static_cast<double>(i) * step + first);
    const double line =
        std::floor(static_cast<double>(dft_length + 1) * hertz / static_cast<double>(sample_rate));
    if (!(line >= 0 && line < static_cast<double>(out.lines))) {
      return InvalidArgument("upper_edge_hertz is ", upper, ": bin ", i, " of the mel scale is ",
                             "line ", line, " of a spectrogram of ", out.lines);
    }
    out.edges.push_back(static_cast<int64_t>(line));
  }
  return out;
}

}  // namespace

/// y[j, i] = the weight of spectrogram line j in mel bin i: a triangle that rises from the bin's
/// left edge to its centre and falls to its right edge, all three equally far apart in mel
OpDef DefineMelWeightMatrix() {
  auto input = [](std::string name, ParamSpec::Kind kind, int at) {
    return ParamSpec{.name = std::move(name), .kind = kind, .onnx_input = at, .required = true};
  };
  return {.name = "MelWeightMatrix",
          .min_inputs = 0,
          .max_inputs = 0,
          .params = {input("num_mel_bins", ParamSpec::kInt, 0),
                     input("dft_length", ParamSpec::kInt, 1),
                     input("sample_rate", ParamSpec::kInt, 2),
                     input("lower_edge_hertz", ParamSpec::kFloat, 3),
                     input("upper_edge_hertz", ParamSpec::kFloat, 4),
                     {.name = "output_datatype", .kind = ParamSpec::kString}},
          .min_opset = 17,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(DType type, OutputTypeOf(d.call()));
            ASSIGN_OR_RETURN(MelScale mel, MelScaleOf(d.call().attrs()));
            ASSIGN_OR_RETURN(HostTensor weights, HostTensor::Create(type, {mel.lines, mel.bins}));
            for (int64_t i = 0; i < mel.bins; ++i) {
              const int64_t* edge = &mel.edges[static_cast<size_t>(i)];
              auto set = [&](int64_t line, int64_t part, int64_t whole) {
                weights.SetDouble(line * mel.bins + i,
                                  static_cast<double>(part) / static_cast<double>(whole));
              };
              Job::Step(edge[2] - edge[0] + 1);
              set(edge[1], 1, 1);
              for (int64_t j = edge[0]; j < edge[1]; ++j) set(j, j - edge[0], edge[1] - edge[0]);
              for (int64_t j = edge[1]; j < edge[2]; ++j) set(j, edge[2] - j, edge[2] - edge[1]);
            }
            return d.Apply("Identity", {d.Constant(std::move(weights))});
          },
          .normalise = NormaliseOutputType};
}

}  // namespace fusion
