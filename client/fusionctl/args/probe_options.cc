#include "client/fusionctl/args/probe_options.h"

#include "client/fusionctl/args/help.h"
#include "client/fusionctl/args/option_words.h"
#include "core/base/text/number_word.h"
#include "core/probe/probe.h"

namespace fusion {

void AddProbe(CLI::App* app, Arguments* a) {
  CLI::App* probe = app->add_subcommand(
      "probe", "measures rates, bandwidths and costs of this CPU for --device-constants");
  probe->callback([a] { a->command = CommandKind::kProbe; });
  probe->footer(HelpFooter("probe"));
  probe->add_option("--seconds", a->seconds, "duration in seconds; default: 2")
      ->check(CLI::Range(kLeastProbeSeconds, kMostProbeSeconds))
      ->check(NumberError)
      ->type_name("S");
  probe
      ->add_option("--threads", a->threads,
                   "threads of the rates of all threads, those of the plans; default: usable cores")
      ->check(CLI::Range(1, kMostProbeThreads))
      ->type_name("N");
  probe
      ->add_option("--isa", a->isa,
                   "measure these instructions, those of the plans; default: the highest level of "
                   "this machine")
      ->check(CheckIsa)
      ->type_name("ISA");
  probe->add_option("-o,--out", a->out, "also write the constants to this file")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  probe->add_flag("--json", a->json, "one JSON object on stdout");
  probe->add_flag("--quiet", a->quiet, "no progress on stderr");
}

void AddDeviceConstants(CLI::App* app, Arguments* a) {
  app->add_option("--device-constants", a->device_constants,
                  "plan with the constants that probe --out wrote to this file, not with those of "
                  "the device spec")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
}

}  // namespace fusion
