#include "client/fusionctl/args/top_options.h"

#include "core/base/text/number_word.h"

namespace fusion {

void AddTopOptions(CLI::App* top, Arguments* a) {
  top->add_option("--interval", a->interval, "time between two frames; default: 2")
      ->check(CLI::Range(0.2, 3600.0))
      ->check(NumberError)
      ->type_name("S");
  top->add_flag("--once", a->once,
                "print one frame and end, as without a terminal; rates are averages since the "
                "service started");
}

}  // namespace fusion
