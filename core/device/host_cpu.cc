#include "core/device/host_cpu.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <thread>

#include "core/base/text/text.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fusion {
namespace {

int64_t* CacheOfLevel(Target* target, int level) {
  switch (level) {
    case 1:
      return &target->l1_bytes;
    case 2:
      return &target->l2_bytes;
    case 3:
      return &target->l3_bytes;
    default:
      return nullptr;
  }
}

#if defined(__x86_64__)

struct CpuidWords {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuidWords Cpuid(unsigned leaf, unsigned subleaf = 0) {
  CpuidWords r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

void ReadIdentity(Target* target) {
  CpuidWords zero = Cpuid(0);
  for (unsigned word : {zero.ebx, zero.edx, zero.ecx}) {
    for (int shift = 0; shift < 32; shift += 8) {
      char c = static_cast<char>(word >> shift);
      if (c != 0) target->vendor.push_back(c);
    }
  }
  // Display family and model as the vendors' manuals compute them.
  unsigned eax = Cpuid(1).eax;
  int family = static_cast<int>(eax >> 8 & 0xF);
  int model = static_cast<int>(eax >> 4 & 0xF);
  if (family == 6 || family == 15) model += static_cast<int>(eax >> 16 & 0xF) << 4;
  if (family == 15) family += static_cast<int>(eax >> 20 & 0xFF);
  target->family = family;
  target->model = model;
}

// Leaf 4 and AMD's copy of it list caches: type and level in eax, geometry in ebx and ecx.
void ReadCaches(Target* target) {
  unsigned leaf =
      target->vendor == "AuthenticAMD" || target->vendor == "HygonGenuine" ? 0x8000001Du : 4u;
  for (unsigned i = 0; i < 16; ++i) {
    CpuidWords r = Cpuid(leaf, i);
    unsigned type = r.eax & 0x1F;
    if (type == 0) return;
    if (type == 2) continue;  // instructions
    int64_t ways = (r.ebx >> 22) + 1;
    int64_t partitions = (r.ebx >> 12 & 0x3FF) + 1;
    int64_t line = (r.ebx & 0xFFF) + 1;
    int64_t sets = int64_t{r.ecx} + 1;
    int64_t* bytes = CacheOfLevel(target, static_cast<int>(r.eax >> 5 & 7));
    if (bytes != nullptr) *bytes = ways * partitions * line * sets;
  }
}

// 48 characters in the registers of three leaves, padded with spaces and zeros.
std::string BrandString() {
  constexpr unsigned kFirst = 0x80000002;
  std::string out;
  for (unsigned leaf = kFirst; leaf < kFirst + 3; ++leaf) {
    std::array<unsigned, 4> words{};
    if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]) == 0) return "";
    out.append(reinterpret_cast<const char*>(words.data()), sizeof(words));
  }
  return out.substr(0, out.find('\0'));
}

#else

void ReadIdentity(Target*) {}
void ReadCaches(Target*) {}

std::string BrandString() { return ""; }

#endif

std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

void ReadCachesFromSysfs(Target* target) {
  for (int i = 0; i < 16; ++i) {
    std::string directory = StrCat("/sys/devices/system/cpu/cpu0/cache/index", i, "/");
    std::string level = FirstLine(directory + "level");
    if (level.size() != 1) return;
    int64_t* bytes = CacheOfLevel(target, level[0] - '0');
    std::string size = FirstLine(directory + "size");  // "32K"
    int64_t value = 0;
    auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), value);
    bool kib = error == std::errc() && end != size.data() + size.size() && *end == 'K';
    bool holds_data = FirstLine(directory + "type") != "Instruction";
    if (bytes != nullptr && *bytes == 0 && kib && holds_data) *bytes = value << 10;
  }
}

}  // namespace

Target HostCpu() {
  Target target;
  ReadIdentity(&target);
  ReadCaches(&target);
  ReadCachesFromSysfs(&target);  // only what is still 0
  target.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return target;
}

std::string HostCpuName() {
  const std::string brand = BrandString();
  std::string out;
  for (std::string_view word : StrSplit(brand, ' ')) {
    if (!word.empty()) StrAppend(&out, StrCat(out.empty() ? "" : " ", word));
  }
  return out.empty() ? HostCpu().vendor : out;
}

}  // namespace fusion
