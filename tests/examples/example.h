#pragma once

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/tensor/host_tensor.h"

namespace fusion {

inline HostTensor Ones(DType dtype, const Dims& dims) {
  HostTensor tensor(dtype, dims);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (IsFloat(dtype)) {
      tensor.SetDouble(i, 1);
    } else {
      tensor.SetInt(i, 1);
    }
  }
  return tensor;
}

// The first elements.
inline void Print(const std::string& name, const HostTensor& tensor) {
  std::printf("%s %s%s:", name.c_str(), std::string(DTypeName(tensor.dtype())).c_str(),
              Shape(tensor.dims()).ToString().c_str());
  int64_t shown = std::min<int64_t>(tensor.elements(), 4);
  for (int64_t i = 0; i < shown; ++i) {
    std::printf(" %g", IsFloat(tensor.dtype()) ? tensor.GetDouble(i) : double(tensor.GetInt(i)));
  }
  std::printf("%s\n", shown < tensor.elements() ? " ..." : "");
}

// What a program NAME SERVER MODEL does with its words: Run(), and its error in a line.
inline int RunExample(const char* name, int argc, char** argv,
                      absl::Status (*run)(const std::string& server, const std::string& path)) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SERVER MODEL.onnx\n", name);
    return 2;
  }
  absl::Status status = run(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", name, std::string(Message(status)).c_str());
  return 1;
}

}  // namespace fusion
