#include "client/fusionctl/args/model_options.h"

#include <algorithm>
#include <regex>

#include "client/fusionctl/args/option_words.h"
#include "client/fusionctl/args/probe_options.h"
#include "core/base/text/number_word.h"
#include "core/bundle/text.h"

namespace fusion {
namespace {

const Choices<FusionMode> kFusionModes = {{"fused", FusionMode::kFused},
                                          {"op-by-op", FusionMode::kOpByOp}};
const Choices<Numerics> kNumerics = {
    {std::string(NumericsName(Numerics::kFp32Accumulate)), Numerics::kFp32Accumulate},
    {std::string(NumericsName(Numerics::kBitwise)), Numerics::kBitwise},
    {std::string(NumericsName(Numerics::kFast)), Numerics::kFast}};

void AddBind(CLI::App* app, Arguments* a) {
  app->add_option_function<std::vector<std::string>>(
         "--bind",
         [a](const std::vector<std::string>& pairs) {
           for (const std::string& pair : pairs) {
             size_t split = pair.rfind('=');  // names may hold '='
             const std::string name = pair.substr(0, split);
             const int64_t value = std::stoll(pair.substr(split + 1));
             const auto [at, fresh] = a->options.dim_bindings.emplace(name, value);
             if (fresh || at->second == value) continue;
             throw CLI::ValidationError(
                 "--bind", StrCat("dim ", QuoteShort(name), " is ", at->second, " and ", value));
           }
         },
         "value of a symbolic dim; may be given more than once")
      ->allow_extra_args(false)
      ->check([](const std::string& pair) {
        size_t split = pair.rfind('=');
        bool digits = split != std::string::npos && split > 0 && split + 1 < pair.size() &&
                      pair.size() - split <= 16 &&
                      pair.find_first_not_of("0123456789", split + 1) == std::string::npos;
        return digits ? std::string() : StrCat("expected NAME=NUMBER, got ", QuoteShort(pair));
      })
      ->type_name("NAME=NUMBER");
}

// "seq=1..512", "seq=8..512/8", "seq=1..512@128", "seq=8..512/8@128".
bool ParseRange(const std::string& text, std::string* name, DimRange* range) {
  static const std::regex kForm(R"((.+)=(\d{1,15})\.\.(\d{1,15})(?:/(\d{1,15}))?(?:@(\d{1,15}))?)");
  std::smatch parts;
  if (!std::regex_match(text, parts, kForm)) return false;
  *name = parts[1];
  *range = {.least = std::stoll(parts[2]),
            .most = std::stoll(parts[3]),
            .multiple = parts[4].matched ? std::stoll(parts[4]) : 1,
            .likely = parts[5].matched ? std::stoll(parts[5]) : 0};
  return true;
}

void AddRange(CLI::App* app, Arguments* a) {
  app->add_option_function<std::vector<std::string>>(
         "--range",
         [a](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             std::string name;
             DimRange range;
             if (!ParseRange(text, &name, &range)) continue;
             if (a->options.dim_ranges.emplace(name, range).second) continue;
             throw CLI::ValidationError("--range",
                                        StrCat("dim ", QuoteShort(name), " has two ranges"));
           }
         },
         "leave a symbolic dim open: one plan for the whole range, in multiples of STEP; --bind "
         "then gives the value of a run; may be given more than once")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        std::string name;
        DimRange range;
        if (!ParseRange(text, &name, &range)) {
          return StrCat("expected NAME=MIN..MAX[/STEP][@LIKELY], got ", QuoteShort(text));
        }
        absl::Status sound = CheckRange(range);
        return sound.ok() ? std::string() : StrCat(QuoteShort(text), ": ", Message(sound));
      })
      ->type_name("NAME=MIN..MAX[/STEP][@LIKELY]");
}

// "past=present", "past.*.key=present.*.key@512".
bool ParseSharing(const std::string& text, SharedNames* shared) {
  static const std::regex kForm(R"((.+)=(.+?)(?:@(\d{1,15}))?)");
  std::smatch parts;
  if (!std::regex_match(text, parts, kForm)) return false;
  *shared = {.input = parts[1],
             .output = parts[2],
             .capacity = parts[3].matched ? std::stoll(parts[3]) : 0};
  const auto stars = [](const std::string& name) {
    return std::count(name.begin(), name.end(), '*');
  };
  return stars(shared->input) <= 1 && stars(shared->input) == stars(shared->output);
}

void AddShare(CLI::App* app, Arguments* a) {
  app->add_option_function<std::vector<std::string>>(
         "--share",
         [a](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             SharedNames shared;
             if (ParseSharing(text, &shared)) a->options.shared_buffers.push_back(shared);
           }
         },
         "this output shares the memory of this input, which has room for CAPACITY elements along "
         "the growing dim, by default as many as the output can have; a run writes only the new "
         "elements; a * on both sides matches the same text; may be given more than once")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        SharedNames shared;
        return ParseSharing(text, &shared)
                   ? std::string()
                   : StrCat("expected INPUT=OUTPUT[@CAPACITY], got ", QuoteShort(text));
      })
      ->type_name("INPUT=OUTPUT[@CAPACITY]");
}

// "x=1,672,3": the name is what is before the last "=".
bool ParseStrides(const std::string& text, NamedStrides* bound) {
  static const std::regex kForm(R"((.+)=(\d{1,15}(?:,\d{1,15})*))");
  std::smatch parts;
  if (!std::regex_match(text, parts, kForm)) return false;
  bound->tensor = parts[1];
  const std::string numbers = parts[2];
  for (std::string_view number : StrSplit(numbers, ',')) {
    bound->strides.push_back(std::stoll(std::string(number)));
  }
  return true;
}

void AddStrides(CLI::App* app, Arguments* a) {
  app->add_option_function<std::vector<std::string>>(
         "--strides",
         [a](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             NamedStrides bound;
             if (ParseStrides(text, &bound)) a->options.bound_strides.push_back(std::move(bound));
           }
         },
         "strides, in elements, of each dim of an input or output that is not dense in memory; may "
         "be given more than once")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        NamedStrides bound;
        return ParseStrides(text, &bound)
                   ? std::string()
                   : StrCat("expected NAME=STRIDE,STRIDE,..., got ", QuoteShort(text));
      })
      ->type_name("NAME=STRIDE,STRIDE,...");
}

}  // namespace

void AddModel(CLI::App* app, Arguments* a) {
  app->add_option("MODEL", a->model, "an ONNX file")
      ->required()
      ->check(CheckNotEmpty)
      ->type_name("FILE.onnx");
}

void AddModelOrKernel(CLI::App* app, Arguments* a) {
  app->add_option("MODEL", a->model,
                  "an ONNX file; or, for schedule, source, smg and program, the key (8 digits or "
                  "more) or symbol (fk_...) of a stored kernel")
      ->required()
      ->check(CheckNotEmpty)
      ->type_name("KEY|FILE.onnx");
}

void AddPlanOptions(CLI::App* app, Arguments* a, bool with_isa) {
  app->add_option("--threads", a->threads, "threads that run the plan; default: usable cores")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  if (with_isa) {
    app->add_option("--isa", a->isa,
                    "plan for a generic CPU with this instruction set: x86-64-v2, avx2, avx512, "
                    "avx512-vnni, avx512-bf16 or avx512-amx; default: this machine")
        ->check(CheckIsa)
        ->type_name("ISA");
  }
  AddChoice(app, "--fusion", &a->options.fusion, kFusionModes, "kernels: fused, or one per node");
  AddChoice(app, "--numerics", &a->options.numerics, kNumerics, "required exactness of results");
  app->add_option("--batch", a->options.hints.batch_size,
                  "value of the leading dim of inputs where it is open")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->type_name("N");
  AddBind(app, a);
  AddRange(app, a);
  AddShare(app, a);
  AddStrides(app, a);
  AddNameValue(
      app, "--fix", &a->fixed, "VALUE",
      "plan for this value of an input, a number or a file (.npy, .pb), if shapes or loop counts "
      "depend on it; a run then has no such input; may be given more than once");
  app->add_option("--as-input", a->as_inputs,
                  "plan this initialiser, which is also a graph input, as an input: a run may "
                  "override its value; may be given more than once")
      ->allow_extra_args(false)
      ->check(CheckNotEmpty)
      ->type_name("NAME");
  AddDeviceConstants(app, a);
  app->add_option("--rules", a->rules,
                  "rules that force, forbid or favour kernels: a fusion.v1.FusionRules in "
                  "protobuf's text format; op-by-op ignores them")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  app->add_option("--custom-ops", a->custom_ops,
                  "definitions of custom operators, see core/custom/README.md")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  auto add_pressure = [app](const char* name, double* field, const char* help) {
    app->add_option(name, *field, help)
        ->check(CLI::Range(0.0, 1.0))
        ->check(NumberError)
        ->type_name("X");
  };
  add_pressure("--memory-pressure", &a->options.hints.memory_pressure,
               "0..1; above 0.8: the plan with the least peak memory");
  add_pressure("--compute-pressure", &a->options.hints.compute_pressure,
               "0..1; above 0.8: no recomputation, and groups must gain much");
  app->add_flag("--low-latency", a->options.hints.low_latency,
                "trade memory for latency: kernels of a layer may become phases of one launch");
  app->add_flag("--frontier", a->options.frontier,
                "also search for plans with less memory or less compile time, to compare with");
  app->add_flag("--debug", a->options.debug,
                "kernels keep symbols and line tables; their code is the same");
  app->add_flag("--guard", a->options.guard,
                "kernels check every element that they read or write: a fault names kernel, op and "
                "tensor; runs take longer");
  app->add_option(
         "--opt-level", a->options.opt_level,
         "time for measuring other tiles than those the benefit model picks: 0 none, 1 up to 10 s, "
         "2 up to 60 s, 3 up to 240 s; only once, the result is stored with the plan")
      ->check(CLI::Range(0, kMaxOptLevel))
      ->type_name("0..3");
  app->add_option(
         "--lock", a->lock,
         "use exactly the plan in this file of plan --write-lock, or fail and report what differs")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  app->add_flag("--allow-fused", a->allow_fused,
                "accept a file of export --fused as the model that it was written from; otherwise "
                "it is refused: ALREADY_FUSED");
}

void AddTarget(CLI::App* app, Arguments* a) {
  app->add_option("--target", a->target,
                  "plan for the device with this spec name: h100, a100, generic-avx2, ...; an "
                  "unknown name lists all; threads default to the device's units")
      ->check(CheckNotEmpty)
      ->excludes(app->get_option("--isa"))
      ->type_name("NAME");
}

void AddDataOptions(CLI::App* app, Arguments* a) {
  app->add_option(
         "--data", a->data,
         "directory with input_0.pb or input_0.npy, ... and optionally output_0.pb, ..., an ONNX "
         "test case with test_data_set_0, ..., or a .npz file with arrays named like the inputs "
         "and outputs; default: random inputs")
      ->check(CheckNotEmpty)
      ->type_name("PATH");
  AddNameValue(app, "--input", &a->inputs, "FILE",
               "file (.npy or .pb) for one input, or for an initialiser that is also a graph "
               "input; overrides --data, the model's value and random inputs; may be given more "
               "than once");
  app->add_option("--seed", a->seed, "seed of random inputs")->check(CheckSeed)->type_name("N");
}

}  // namespace fusion
