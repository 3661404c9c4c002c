// The server that does nothing, as a process of its own:
//
//   bare_server ANSWER      gives everybody the bytes of the file ANSWER, on 127.0.0.1 and the port
//                           that it prints
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/service/bare_server.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::ostringstream answer;
  answer << std::ifstream(argv[1], std::ios::binary).rdbuf();
  fusion::BareServer server("127.0.0.1:0", answer.str());
  if (!server.running()) return 1;
  std::printf("%d\n", server.port());
  std::fflush(stdout);
  server.Wait();
}
