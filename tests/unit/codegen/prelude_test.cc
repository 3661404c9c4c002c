// Accuracy of the vector functions in front of generated kernels, by way of compiled kernels, on
// every ISA this machine runs.
#include "core/codegen/cpu/prelude.h"

#include <absl/strings/str_replace.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

#include "core/check/kernel_run.h"
#include "core/graph/build/text.h"
#include "core/schedule/tiles/candidates.h"
#include "tests/support/kernel_harness.h"

namespace fusion {
namespace {

constexpr int64_t kSamples = int64_t{1} << 18;
constexpr int64_t kDoubleSamples = 4096;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

struct Function {
  const char* name;
  // One or two, with one result each: of %x, of the first one, %1, and of %two, which is 2.
  std::array<const char*, 2> nodes;
  double (*exact)(double);
  // Largest error, as the prelude states it: in units of the last place of the exact result, or
  // absolute, whichever is more.
  double ulps;
  double absolute;
  // Where most samples lie; the others are all over the floats.
  float low;
  float high;
};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Rsqrt(double x) { return 1 / std::sqrt(x); }
double Elu(double x) { return x < 0 ? std::expm1(x) : x; }

double Gelu(double x) { return x * std::erfc(-x * std::sqrt(0.5)) / 2; }
double GeluByTanh(double x) {
  // 1 + tanh y = 2 / (1 + e^-2y)
  return x / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

constexpr Function kFunctions[] = {
    // The first one, for inputs are in the order in which they are used.
    {"Exp2", {"Pow(%two, %x)"}, std::exp2, 0.51, 0, -150, 129},
    {"Exp", {"Exp(%x)"}, std::exp, 1.3, 0, -104, 89},
    {"Log", {"Log(%x)"}, std::log, 1, 0, 0, 10},
    {"Erf", {"Erf(%x)"}, std::erf, 1, 4.8e-7, -5, 5},
    {"Tanh", {"Tanh(%x)"}, std::tanh, 1, 3.8e-7, -10, 10},
    {"Sin", {"Sin(%x)"}, std::sin, 1.6, 0, -1000, 1000},
    {"Cos", {"Cos(%x)"}, std::cos, 1.6, 0, -1000, 1000},
    {"Sqrt", {"Sqrt(%x)"}, std::sqrt, 0.5, 0, 0, 100},
    {"Sigmoid", {"Sigmoid(%x)"}, Sigmoid, 3.3, 3e-39, -90, 90},
    // Of the functions above.
    {"Sinh", {"Sinh(%x)"}, std::sinh, 8, 0, -90, 90},
    {"Cosh", {"Cosh(%x)"}, std::cosh, 6, 0, -90, 90},
    {"Elu", {"Elu(%x)"}, Elu, 8, 0, -20, 2},
    {"Rsqrt", {"Sqrt(%x)", "Reciprocal(%1)"}, Rsqrt, 1.5, 0, 0, 100},
    {"Gelu", {"Gelu(%x)"}, Gelu, 1, 1.4e-6, -7, 7},
    {"GeluByTanh", {"Gelu(%x) {approximate=\"tanh\"}"}, GeluByTanh, 1, 1.4e-6, -7, 7},
};
constexpr size_t kFunctionCount = std::size(kFunctions);

float FromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

// Half of the samples between low and high, half spread over all bit patterns, special ones first.
std::vector<float> Samples(float low, float high) {
  std::vector<float> out = {0.0F,     -0.0F,           kInf,    -kInf, kNan,  kTiny,
                            -kTiny,   1e-40F,          -1e-40F, 1.0F,  -1.0F, 3.4e38F,
                            -3.4e38F, 1.17549435e-38F, 0.5F,    1e6F};
  auto step = (static_cast<double>(high) - low) / (kSamples / 2);
  for (int64_t i = 0; i < kSamples / 2; ++i) {
    out.push_back(static_cast<float>(low + static_cast<double>(i) * step));
  }
  uint32_t bits = 0;
  while (static_cast<int64_t>(out.size()) < kSamples) {
    out.push_back(FromBits(bits));
    bits += 32771;  // odd, and kSamples / 2 steps of it reach around all patterns
  }
  return out;
}

// Error of `got` in units of the last place of `exact` as a float; infinite where one is no number,
// infinite or a zero of a sign and the other is not.
double Ulps(float got, double exact) {
  auto rounded = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kInf;
  if (std::isinf(rounded)) {
    // One step further down is as near.
    const bool near = got == rounded || std::fabs(got) >= 3.4028233e38F;
    return near && std::signbit(got) == std::signbit(rounded) ? 0 : kInf;
  }
  if (!std::isfinite(got)) return kInf;
  if (exact == 0 && got == 0) return std::signbit(got) == std::signbit(exact) ? 0 : kInf;
  int exponent = 0;
  std::frexp(exact, &exponent);
  double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(static_cast<double>(got) - exact) / unit;
}

// Compiles a graph as one kernel for a device.
struct Compiled {
  WholeProgram whole;
  Lowered lowered;
  KernelReference reference;
  std::shared_ptr<const LoadedKernel> kernel;

  absl::StatusOr<std::vector<HostTensor>> Run(const std::vector<HostTensor>& inputs) const {
    return RunKernel(*kernel, lowered.schedule, reference, inputs);
  }
};

absl::StatusOr<Compiled> Compile(const std::string& text, const DeviceSpec& device) {
  Compiled c;
  ASSIGN_OR_RETURN(Graph graph, ParseGraph(text));
  ASSIGN_OR_RETURN(Program program, BuildProgram(graph));
  ASSIGN_OR_RETURN(c.whole, AsOneGroup(program));
  std::vector<Choice> choices = EnumerateChoices(c.whole.group, device, {}, nullptr);
  if (choices.empty()) return Internal("no schedule");
  ASSIGN_OR_RETURN(c.lowered, Lower(c.whole.group, choices[0], device, false));
  c.reference = MakeReference(c.whole.program, c.whole.group, c.lowered);
  PlannedModel model;
  model.kernels.push_back({.schedule = c.lowered.schedule, .text = "", .reference = c.reference});
  ASSIGN_OR_RETURN(auto kernels, CompileKernels(model, device));
  c.kernel = kernels[0];
  return c;
}

class Prelude : public ::testing::TestWithParam<std::string> {};

// One kernel with a result a function: compiling is the slow part.
absl::StatusOr<Compiled> CompileFunctions(const DeviceSpec& device) {
  std::string text = "graph \"g\" {\n";
  std::string nodes;
  std::string outputs;
  size_t values = kFunctionCount + 1;  // the first input is 2
  for (size_t i = 0; i < values; ++i) {
    text += StrCat("  %", i, " = input \"\" : f32[", i > 0 ? kSamples : 1, "]\n");
  }
  for (size_t f = 0; f < kFunctionCount; ++f) {
    const size_t first = values;
    for (const char* node : kFunctions[f].nodes) {
      if (node == nullptr) continue;
      std::string of_values = absl::StrReplaceAll(
          node, {{"%x", StrCat("%", f + 1)}, {"%two", "%0"}, {"%1", StrCat("%", first)}});
      nodes += StrCat("  %", values++, " = ", of_values, " : f32[", kSamples, "]  \"\" @ \"\"\n");
    }
    outputs += StrCat("  output %", values - 1, "\n");
  }
  return Compile(StrCat(text, nodes, outputs, "}\n"), device);
}

HostTensor Two() { return HostTensor::FromValues<float>(DType::kF32, {1}, {2}); }

// Where a function was least accurate beyond the absolute error that is stated.
struct Worst {
  double ulps = 0;
  float where = 0;
};
using WorstOfEach = std::array<Worst, kFunctionCount>;

// Runs every function on its samples, of which there are kSamples each, behind the first input.
absl::Status Measure(const Compiled& compiled, const std::vector<HostTensor>& samples,
                     WorstOfEach* worst) {
  ASSIGN_OR_RETURN(std::vector<HostTensor> results, compiled.Run(samples));
  for (size_t f = 0; f < kFunctionCount; ++f) {
    for (size_t i = 0; i < static_cast<size_t>(kSamples); ++i) {
      const float x = samples[f + 1].data<float>()[i];
      const float y = results[f].data<float>()[i];
      const double exact = kFunctions[f].exact(x);
      const double error = Ulps(y, exact);
      const bool near = std::isfinite(error) && std::fabs(y - exact) <= kFunctions[f].absolute;
      if (error <= (*worst)[f].ulps || near) continue;
      (*worst)[f] = {error, x};
    }
  }
  return absl::OkStatus();
}

void ExpectAsStated(const WorstOfEach& worst) {
  for (size_t f = 0; f < kFunctionCount; ++f) {
    EXPECT_LE(worst[f].ulps, kFunctions[f].ulps)
        << kFunctions[f].name << "(" << worst[f].where << ")";
    ::testing::Test::RecordProperty(StrCat(kFunctions[f].name, "_ulps"), StrCat(worst[f].ulps));
  }
}

TEST_P(Prelude, FunctionsAreAsAccurateAsStated) {
  auto compiled = CompileFunctions(DeviceNamed(GetParam()));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  std::vector<HostTensor> inputs = {Two()};
  for (const Function& function : kFunctions) {
    inputs.emplace_back(DType::kF32, Dims{kSamples});
    std::vector<float> samples = Samples(function.low, function.high);
    std::copy(samples.begin(), samples.end(), inputs.back().data<float>().begin());
  }
  WorstOfEach worst{};
  ASSERT_TRUE(Measure(*compiled, inputs, &worst).ok());
  ExpectAsStated(worst);
}

// Every 16381st bit pattern of a float; with FUSION_EVERY_FLOAT set every one of them, a quarter of
// an hour.
TEST_P(Prelude, FloatsAreAsAccurateAsStated) {
  auto compiled = CompileFunctions(DeviceNamed(GetParam()));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const uint64_t step = std::getenv("FUSION_EVERY_FLOAT") != nullptr ? 1 : 16381;
  constexpr uint64_t kPatterns = uint64_t{1} << 32;
  const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::vector<WorstOfEach> worst(threads);
  std::vector<absl::Status> status(threads);
  std::atomic<uint64_t> next = 0;
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      std::vector<HostTensor> inputs = {Two()};
      for (size_t f = 0; f < kFunctionCount; ++f) {
        inputs.emplace_back(DType::kF32, Dims{kSamples});
      }
      for (;;) {
        const uint64_t first = next.fetch_add(kSamples * step);
        if (first >= kPatterns || !status[t].ok()) return;
        for (size_t f = 0; f < kFunctionCount; ++f) {
          for (uint64_t i = 0; i < static_cast<uint64_t>(kSamples); ++i) {
            inputs[f + 1].data<float>()[i] = FromBits(static_cast<uint32_t>(first + i * step));
          }
        }
        status[t] = Measure(*compiled, inputs, &worst[t]);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (const absl::Status& s : status) ASSERT_TRUE(s.ok()) << s;
  for (const WorstOfEach& other : worst) {
    for (size_t f = 0; f < other.size(); ++f) {
      if (other[f].ulps > worst[0][f].ulps) worst[0][f] = other[f];
    }
  }
  ExpectAsStated(worst[0]);
}

TEST_P(Prelude, PowIsAsAccurateAsStated) {
  auto compiled =
      Compile(StrCat("graph \"g\" {\n  %0 = input \"\" : f32[", kSamples,
                     "]\n  %1 = input \"\" : f32[", kSamples, "]\n  %2 = Pow(%0, %1) : f32[",
                     kSamples, "]  \"\" @ \"\"\n  output %2\n}\n"),
              DeviceNamed(GetParam()));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  std::vector<float> special = {
      0.0F,          -0.0F, kInf,        -kInf,       kNan,        1.0F,      -1.0F,  2.0F,
      -2.0F,         0.5F,  -0.5F,       3.0F,        -3.0F,       1e30F,     1e-30F, 1e-42F,
      2147483648.0F, -2.5F, 16777215.0F, 16777216.0F, 33554431.0F, 1.0000001F};
  std::vector<float> xs = Samples(0, 20);
  std::vector<float> ys = Samples(-8, 8);
  size_t at = 0;
  for (float x : special) {
    for (float y : special) {
      xs[at] = x;
      ys[at++] = y;
    }
  }
  // Neighbours must not both be small or both large.
  for (size_t i = at; i < ys.size() / 2; ++i)
    std::swap(ys[i], ys[at + (i * 7919) % (ys.size() / 2 - at)]);
  std::vector<HostTensor> inputs(2, HostTensor(DType::kF32, {kSamples}));
  std::copy(xs.begin(), xs.end(), inputs[0].data<float>().begin());
  std::copy(ys.begin(), ys.end(), inputs[1].data<float>().begin());
  auto results = compiled->Run(inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; i < xs.size(); ++i) {
    double exact = std::pow(static_cast<double>(xs[i]), static_cast<double>(ys[i]));
    float y = (*results)[0].data<float>()[i];
    ASSERT_LE(Ulps(y, exact), 0.51) << xs[i] << " ^ " << ys[i] << " = " << y << ", " << exact;
  }
}

struct DoubleFunction {
  const char* op;
  long double (*exact)(long double);
  // Largest error, relative to the exact result, or absolute, whichever is more.
  double relative;
  double absolute;
  double low;
  double high;
};
constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr DoubleFunction kDoubleFunctions[] = {
    {"Exp", std::exp, 2 * kEps, 1e-323, -750, 710},
    {"Log", std::log, 2 * kEps, 0, 0, 3},
    {"Erf", std::erf, 40 * kEps, 0, -7, 7},
    {"Tanh", std::tanh, 3 * kEps, 0, -4, 4},
    {"Sin", std::sin, kEps, 2.3e-16, -1e6, 1e12},
    {"Cos", std::cos, kEps, 2.3e-16, -1e6, 1e12},
    {"Sqrt", std::sqrt, 0.5 * kEps, 0, 0, 100},
    {"Sigmoid", [](long double x) { return 1 / (1 + std::exp(-x)); }, 4 * kEps, 1e-320, -40, 40},
    {"Floor", std::floor, 0, 0, -100, 100},
    {"Ceil", std::ceil, 0, 0, -100, 100},
    {"Round", [](long double x) { return std::nearbyint(x); }, 0, 0, -100, 100},
    {"Reciprocal", [](long double x) { return 1 / x; }, 0.5 * kEps, 0, -100, 100},
};

std::vector<double> DoubleSamples(double low, double high) {
  constexpr double kBig = std::numeric_limits<double>::max();
  std::vector<double> out = {0.0,     -0.0,      kInf,  -kInf, kNan,     5e-324, -5e-324, 1e-310,
                             1.0,     -1.0,      kBig,  -kBig, 2.3e-308, 1e300,  1e22,    -1e200,
                             2.5,     -0.4,      7e-17, -1e-9, 0.17,     0.18,   6.0,     -6.0,
                             1048576, 1048575.5, 355.0, 710.4, -745.0};
  const auto given = static_cast<int64_t>(out.size());
  for (int64_t i = given; i < kDoubleSamples; ++i) {
    out.push_back(low + (high - low) * static_cast<double>(i) / kDoubleSamples);
  }
  return out;
}

TEST_P(Prelude, DoubleFunctionsAreAsAccurateAsStated) {
  std::string text = "graph \"g\" {\n";
  std::string nodes;
  std::string outputs;
  const size_t count = std::size(kDoubleFunctions);
  std::vector<HostTensor> inputs;
  for (size_t f = 0; f < count; ++f) {
    const DoubleFunction& function = kDoubleFunctions[f];
    const std::string type = StrCat("f64[", kDoubleSamples, "]");
    text += StrCat("  %", f, " = input \"\" : ", type, "\n");
    nodes += StrCat("  %", count + f, " = ", function.op, "(%", f, ") : ", type, "  \"\" @ \"\"\n");
    outputs += StrCat("  output %", count + f, "\n");
    inputs.emplace_back(DType::kF64, Dims{kDoubleSamples});
    std::vector<double> samples = DoubleSamples(function.low, function.high);
    std::copy(samples.begin(), samples.end(), inputs.back().data<double>().begin());
  }
  auto compiled = Compile(StrCat(text, nodes, outputs, "}\n"), DeviceNamed(GetParam()));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  auto results = compiled->Run(inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  for (size_t f = 0; f < count; ++f) {
    const DoubleFunction& function = kDoubleFunctions[f];
    for (size_t i = 0; i < kDoubleSamples; ++i) {
      const double x = inputs[f].data<double>()[i];
      const double y = (*results)[f].data<double>()[i];
      const long double exact = function.exact(x);
      const auto rounded = static_cast<double>(exact);
      if (std::isnan(rounded) || std::isinf(rounded)) {
        EXPECT_TRUE(std::isnan(rounded) ? std::isnan(y) : y == rounded)
            << function.op << "(" << x << ") = " << y;
        continue;
      }
      const double error = std::fabs(static_cast<double>(y - exact));
      const double most = std::max(function.absolute, function.relative * std::fabs(rounded));
      ASSERT_LE(error, most) << function.op << "(" << x << ") = " << y << ", exact " << rounded;
      EXPECT_TRUE(rounded != 0 || std::signbit(y) == std::signbit(rounded)) << function.op;
    }
  }
}

TEST_P(Prelude, PowersOfDoublesAreAsAccurateAsStated) {
  constexpr int64_t kPowers = 2048;
  auto compiled = Compile(
      StrCat("graph \"g\" {\n  %0 = input \"\" : f64[", kPowers, "]\n  %1 = input \"\" : f64[",
             kPowers, "]\n  %2 = Pow(%0, %1) : f64[", kPowers, "]  \"\" @ \"\"\n  output %2\n}\n"),
      DeviceNamed(GetParam()));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  constexpr double kBig = std::numeric_limits<double>::max();
  const std::vector<double> special = {0.0,    -0.0, kInf,   -kInf, kNan, 1.0, -1.0,   2.0,
                                       -2.0,   0.5,  3.0,    -3.0,  9.0,  7.0, 10.0,   kBig,
                                       5e-324, -2.5, 1e-310, 6.0,   1e16, 0.2, 1.0 / 3};
  std::vector<HostTensor> in(2, HostTensor(DType::kF64, {kPowers}));
  for (size_t i = 0; i < kPowers; ++i) {
    const bool given = i < special.size() * special.size();
    in[0].data<double>()[i] = given ? special[i / special.size()] : 0.01 * static_cast<double>(i);
    in[1].data<double>()[i] =
        given ? special[i % special.size()] : static_cast<double>(i * 7919 % 2001) * 0.05 - 50;
  }
  auto results = compiled->Run(in);
  ASSERT_TRUE(results.ok()) << results.status();
  for (int64_t i = 0; i < kPowers; ++i) {
    const double x = in[0].GetDouble(i);
    const double y = in[1].GetDouble(i);
    const double got = (*results)[0].GetDouble(i);
    const long double exact = std::pow(static_cast<long double>(x), static_cast<long double>(y));
    const auto wanted = static_cast<double>(exact);
    if (!std::isfinite(wanted) || wanted == 0) {
      EXPECT_TRUE(std::isnan(wanted) ? std::isnan(got) : got == wanted)
          << x << "^" << y << " " << got;
      EXPECT_TRUE(std::isnan(wanted) || std::signbit(got) == std::signbit(wanted)) << x << "^" << y;
      continue;
    }
    const double unit = std::nextafter(std::fabs(wanted), kInf) - std::fabs(wanted);
    const auto error = static_cast<double>(std::fabs(got - exact));
    const bool exactly = std::fabs(std::log2(std::fabs(wanted))) <= 64;
    EXPECT_LE(error, (exactly ? 0.51 : 1) * unit)
        << x << "^" << y << " = " << got << ", exact " << wanted;
  }
}

// Every bit pattern of the 16-bit floats, and floats and doubles between and beyond them.
TEST_P(Prelude, HalvesAreConvertedExactly) {
  for (DType half : {DType::kF16, DType::kBF16}) {
    SCOPED_TRACE(DTypeName(half));
    constexpr int64_t kPatterns = 65536;
    const std::string name(DTypeName(half));
    auto compiled =
        Compile(StrCat("graph \"g\" {\n  %0 = input \"\" : ", name, "[65536]\n",
                       "  %1 = input \"\" : f32[65536]\n", "  %2 = input \"\" : f64[65536]\n",
                       "  %3 = Cast(%0) {to=\"f32\"} : f32[65536]  \"\" @ \"\"\n",
                       "  %4 = Cast(%1) {to=\"", name, "\"} : ", name, "[65536]  \"\" @ \"\"\n",
                       "  %5 = Cast(%2) {to=\"", name, "\"} : ", name, "[65536]  \"\" @ \"\"\n",
                       "  output %3\n  output %4\n  output %5\n}\n"),
                DeviceNamed(GetParam()));
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    std::vector<HostTensor> in = {HostTensor(half, {kPatterns}),
                                  HostTensor(DType::kF32, {kPatterns}),
                                  HostTensor(DType::kF64, {kPatterns})};
    for (int64_t i = 0; i < kPatterns; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      std::memcpy(in[0].bytes() + 2 * i, &bits, 2);
      // A tie, and what a tie is not: f32 cannot say the difference.
      const double here = in[0].GetDouble(i);
      const auto next_bits = static_cast<uint16_t>(i + 1);
      HostTensor next(half, {1});
      std::memcpy(next.bytes(), &next_bits, 2);
      const double tie = (here + next.GetDouble(0)) / 2;
      in[1].SetDouble(i, i % 3 == 0   ? tie
                         : i % 3 == 1 ? std::nextafter(static_cast<float>(tie), kInf)
                                      : std::nextafter(static_cast<float>(tie), -kInf));
      in[2].SetDouble(i, i % 3 == 0 ? tie : std::nextafter(tie, i % 3 == 1 ? 1e300 : -1e300));
    }
    auto results = compiled->Run(in);
    ASSERT_TRUE(results.ok()) << results.status();
    for (int64_t i = 0; i < kPatterns; ++i) {
      const double wide = (*results)[0].GetDouble(i);
      EXPECT_TRUE(wide == in[0].GetDouble(i) ||
                  (std::isnan(wide) && std::isnan(in[0].GetDouble(i))))
          << i << ": " << wide;
      for (size_t k : {1, 2}) {
        const double x = in[k].GetDouble(i);
        const double got = (*results)[k].GetDouble(i);
        const double wanted = RoundTo(half, x);
        ASSERT_TRUE(got == wanted || (std::isnan(got) && std::isnan(wanted)))
            << "from " << DTypeName(in[k].dtype()) << " " << x << ": " << got << ", wanted "
            << wanted;
      }
    }
  }
}

TEST_P(Prelude, RemaindersAndIntegerPowersAreExact) {
  auto compiled = Compile(R"(graph "g" {
  %0 = input "" : f32[9]
  %1 = input "" : f32[9]
  %2 = input "" : f64[9]
  %3 = input "" : f64[9]
  %4 = input "" : i64[9]
  %5 = input "" : i64[9]
  %6 = Mod(%0, %1) {fmod=1} : f32[9]  "" @ ""
  %7 = Mod(%2, %3) {fmod=1} : f64[9]  "" @ ""
  %8 = Pow(%4, %5) : i64[9]  "" @ ""
  output %6
  output %7
  output %8
}
)",
                          DeviceNamed(GetParam()));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const std::vector<float> x = {5.5F, -5.5F, 1e38F, 7, kInf, 3, kNan, -0.0F, 1e-40F};
  const std::vector<float> y = {2, 2, 3e-38F, -3, 2, kInf, 2, 1, 3e-41F};
  std::vector<HostTensor> in = {HostTensor(DType::kF32, {9}), HostTensor(DType::kF32, {9}),
                                HostTensor(DType::kF64, {9}), HostTensor(DType::kF64, {9}),
                                HostTensor(DType::kI64, {9}), HostTensor(DType::kI64, {9})};
  const std::vector<int64_t> base = {3, -3, 2, 7, 0, 1, -1, 5, 10};
  const std::vector<int64_t> exponent = {4, 3, 63, 0, 0, -5, -3, -1, 18};
  for (int64_t i = 0; i < 9; ++i) {
    const auto at = static_cast<size_t>(i);
    in[0].SetDouble(i, x[at]);
    in[1].SetDouble(i, y[at]);
    in[2].SetDouble(i, x[at] * 1e200);
    in[3].SetDouble(i, y[at]);
    in[4].SetInt(i, base[at]);
    in[5].SetInt(i, exponent[at]);
  }
  auto results = compiled->Run(in);
  ASSERT_TRUE(results.ok()) << results.status();
  for (int64_t i = 0; i < 9; ++i) {
    for (size_t k : {0, 1}) {
      const double wanted = std::fmod(in[2 * k].GetDouble(i), in[2 * k + 1].GetDouble(i));
      const double got = (*results)[k].GetDouble(i);
      EXPECT_TRUE(got == wanted || (std::isnan(got) && std::isnan(wanted)))
          << k << " " << i << ": " << got << ", wanted " << wanted;
    }
  }
  const std::vector<int64_t> powers = {
      81, -27, std::numeric_limits<int64_t>::min(), 1, 1, 1, -1, 0, 1000000000000000000};
  for (int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ((*results)[2].GetInt(i), powers[static_cast<size_t>(i)]) << i;
  }
}

// Rows that are divided by one number are multiplied by its reciprocal where that gives the same
// bits: random quotients, and divisors and dividends at the ends of where it may be done.
TEST_P(Prelude, QuotientsByOneNumberAreThoseOfADivision) {
  constexpr int64_t kRows = 192;
  constexpr int64_t kColumns = 1024;
  auto compiled =
      Compile(StrCat("graph \"g\" {\n  %0 = input \"\" : f32[", kRows, ",", kColumns,
                     "]\n  %1 = input \"\" : f32[", kRows, ",1]\n  %2 = Div(%0, %1) : f32[", kRows,
                     ",", kColumns, "]  \"\" @ \"\"\n  output %2\n}\n"),
              DeviceNamed(GetParam()));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  HostTensor x(DType::kF32, {kRows, kColumns});
  HostTensor y(DType::kF32, {kRows, 1});
  const std::vector<float> divisors = {3.0F, 1.9999999F,    0x1p100F, 0x1.8p100F, 0x1p-100F, 1e-40F,
                                       0.0F, -0.0F,         -7.0F,    kInf,       -kInf,     kNan,
                                       1.0F, 0x1.000002p0F, 3.4e38F,  1.2e-38F};
  const std::vector<float> dividends = {0.0F,  -0.0F,   kInf,   -kInf, kNan,    1e-40F,
                                        kTiny, 3.4e38F, -1e38F, 1.0F,  0x1p27F, 0x1.fffffep-1F};
  uint32_t bits = 1;
  auto next = [&bits] { return bits = bits * 1664525 + 1013904223; };
  for (int64_t r = 0; r < kRows; ++r) {
    const auto at = static_cast<size_t>(r);
    y.data<float>()[at] =
        at < divisors.size() ? divisors[at] : FromBits(next() >> 9 | (27 + next() % 200) << 23);
    for (int64_t c = 0; c < kColumns; ++c) {
      const auto i = static_cast<size_t>(r * kColumns + c);
      const auto column = static_cast<size_t>(c);
      // Exponents at which neither the quotient nor its remainder leaves the normal numbers.
      x.data<float>()[i] = column < dividends.size() && at < divisors.size()
                               ? dividends[column]
                               : FromBits((next() >> 9) | (127 + next() % 20) << 23 | next() << 31);
    }
  }
  auto results = compiled->Run({x, y});
  ASSERT_TRUE(results.ok()) << results.status();
  int64_t wrong = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const auto i = static_cast<size_t>(r * kColumns + c);
      const float a = x.data<float>()[i];
      const float b = y.data<float>()[static_cast<size_t>(r)];
      const float wanted = a / b;
      const float got = (*results)[0].data<float>()[i];
      const bool same = std::isnan(wanted)
                            ? std::isnan(got)
                            : got == wanted && std::signbit(got) == std::signbit(wanted);
      const bool tiny = std::fabs(wanted) < 0x1p-100F && std::fabs(got - wanted) <= kTiny;
      if (same || tiny) continue;
      if (++wrong < 10) ADD_FAILURE() << a << " / " << b << " = " << got << ", wanted " << wanted;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(Prelude, SignsOfZerosAndSpecialValuesAreKept) {
  auto compiled = Compile(R"(graph "g" {
  %0 = input "" : f32[7]
  %1 = Tanh(%0) : f32[7]  "" @ ""
  %2 = Erf(%0) : f32[7]  "" @ ""
  %3 = Sin(%0) : f32[7]  "" @ ""
  %4 = Sqrt(%0) : f32[7]  "" @ ""
  %5 = Floor(%0) : f32[7]  "" @ ""
  %6 = Round(%0) : f32[7]  "" @ ""
  output %1
  output %2
  output %3
  output %4
  output %5
  output %6
}
)",
                          DeviceNamed(GetParam()));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  HostTensor x = HostTensor::FromValues<float>(DType::kF32, {7},
                                               {-0.0F, 0.0F, kNan, kTiny, -kTiny, 2.5F, -0.4F});
  auto results = compiled->Run({x});
  ASSERT_TRUE(results.ok()) << results.status();
  for (size_t f = 0; f < results->size(); ++f) {
    auto y = (*results)[f].data<float>();
    EXPECT_TRUE(y[0] == 0 && std::signbit(y[0])) << f;
    EXPECT_TRUE(y[1] == 0 && !std::signbit(y[1])) << f;
    EXPECT_TRUE(std::isnan(y[2])) << f;
  }
  EXPECT_EQ((*results)[5].data<float>()[5], 2);  // halves go to the even neighbour
  EXPECT_TRUE(std::signbit((*results)[5].data<float>()[6]));
  EXPECT_EQ((*results)[4].data<float>()[4], -1);
}

INSTANTIATE_TEST_SUITE_P(Isas, Prelude, ::testing::ValuesIn(RunnableDevices()),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Prelude);

}  // namespace
}  // namespace fusion
