#pragma once

namespace fusion {

/// A graph with windows (convolutions, pools) that can be one kernel.
struct WindowCase {
  const char* name;
  /// What the spatial slicer says of each output dim that windows slide along, in their order;
  /// "" for a dim of the graph that no halo follows from.
  const char* slices;
  const char* graph;
};

inline constexpr WindowCase kWindowCases[] = {
    {"conv_bias_leakyrelu", "oh halo d2 oh + 2; ow halo d3 ow + 2",
     R"(graph "g" {
  %0 = input "x" : f32[2,4,9,11]
  %1 = weight "w" : f32[5,4,3,3]
  %2 = weight "b" : f32[5]
  %3 = Conv(%0, %1, %2) {pads=[1, 1, 1, 1]} : f32[2,5,9,11]  "" @ ""
  %4 = LeakyRelu(%3) {alpha=f(0x1.99999ap-4)} : f32[2,5,9,11]  "" @ ""
  output %4
}
)"},
    {"conv_bn_relu_add",
     "oh recomputes op 0, op 3, op 4, op 5, op 6, op 7, halo d2 oh + 2; ow recomputes op 0, op 3, "
     "op 4, op 5, op 6, op 7, halo d3 ow + 2",
     R"(graph "g" {
  %0 = input "x" : f32[1,4,10,7]
  %1 = weight "w" : f32[4,4,3,3]
  %2 = weight "scale" : f32[4]
  %3 = weight "shift" : f32[4]
  %4 = weight "mean" : f32[4]
  %5 = input "var" : f32[4]
  %6 = Abs(%5) : f32[4]  "" @ ""
  %7 = Conv(%0, %1) {pads=[1, 1, 1, 1]} : f32[1,4,10,7]  "" @ ""
  %8 = BatchNormalization(%7, %2, %3, %4, %6) : f32[1,4,10,7]  "" @ ""
  %9 = Relu(%8) : f32[1,4,10,7]  "" @ ""
  %10 = Add(%9, %0) : f32[1,4,10,7]  "" @ ""
  output %10
}
)"},
    // The padding is 0, not sigmoid(0).
    {"sigmoid_conv_relu", "oh halo d21 oh + 2, halo d2 oh + 2; ow halo d31 ow + 2, halo d3 ow + 2",
     R"(graph "g" {
  %0 = input "x" : f32[1,5,11,13]
  %1 = weight "w" : f32[6,5,3,3]
  %2 = Sigmoid(%0) : f32[1,5,11,13]  "" @ ""
  %3 = Conv(%2, %1) {pads=[1, 1, 1, 1]} : f32[1,6,11,13]  "" @ ""
  %4 = Relu(%3) : f32[1,6,11,13]  "" @ ""
  output %4
}
)"},
    {"bn_relu_conv",
     "oh recomputes op 0, op 1, op 2, op 3, op 4, op 5, halo d21 oh + 2, halo d2 oh + 2; ow "
     "recomputes op 0, op 1, op 2, op 3, op 4, op 5, halo d31 ow + 2, halo d3 ow + 2",
     R"(graph "g" {
  %0 = input "x" : f32[2,3,8,9]
  %1 = weight "w" : f32[4,3,3,3]
  %2 = weight "scale" : f32[3]
  %3 = weight "shift" : f32[3]
  %4 = weight "mean" : f32[3]
  %5 = input "var" : f32[3]
  %6 = Abs(%5) : f32[3]  "" @ ""
  %7 = BatchNormalization(%0, %2, %3, %4, %6) : f32[2,3,8,9]  "" @ ""
  %8 = Relu(%7) : f32[2,3,8,9]  "" @ ""
  %9 = Conv(%8, %1) {pads=[1, 1, 1, 1]} : f32[2,4,8,9]  "" @ ""
  output %9
}
)"},
    // DenseNet: new channels beside the old ones.
    {"bn_relu_conv_concat",
     "d1 recomputes op 0, op 1, op 2, halo co d1; oh halo d21 oh + 2, halo d2 oh + 2; ow halo d31 "
     "ow + 2, halo d3 ow + 2",
     R"(graph "g" {
  %0 = input "x" : f32[1,3,8,9]
  %1 = weight "w" : f32[2,3,3,3]
  %2 = weight "scale" : f32[1,3,1,1]
  %3 = Mul(%0, %2) : f32[1,3,8,9]  "" @ ""
  %4 = Relu(%3) : f32[1,3,8,9]  "" @ ""
  %5 = Conv(%4, %1) {pads=[1, 1, 1, 1]} : f32[1,2,8,9]  "" @ ""
  %6 = Concat(%0, %5) {axis=1} : f32[1,5,8,9]  "" @ ""
  output %6
}
)"},
    {"custom_chain_conv_strided_asymmetric",
     "oh halo d21 2*oh + 1, halo d2 2*oh + 1; ow halo d31 3*ow - 1, halo d3 3*ow - 1",
     R"(graph "g" {
  %0 = input "x" : f32[1,4,12,14]
  %1 = weight "w" : f32[5,4,3,2]
  %2 = weight "scale" : f32[4,1,1]
  %3 = weight "shift" : f32[4,1,1]
  %4 = Mul(%0, %2) : f32[1,4,12,14]  "" @ ""
  %5 = Add(%4, %3) : f32[1,4,12,14]  "" @ ""
  %6 = Exp(%5) : f32[1,4,12,14]  "" @ ""
  %7 = Tanh(%6) : f32[1,4,12,14]  "" @ ""
  %8 = Conv(%7, %1) {pads=[0, 1, 2, 1], strides=[2, 3]} : f32[1,5,6,5]  "" @ ""
  output %8
}
)"},
    {"relu_conv_dilated", "oh halo d21 oh + 4, halo d2 oh + 4; ow halo d31 ow + 6, halo d3 ow + 6",
     R"(graph "g" {
  %0 = input "x" : f32[1,3,13,12]
  %1 = weight "w" : f32[4,3,3,3]
  %2 = Relu(%0) : f32[1,3,13,12]  "" @ ""
  %3 = Conv(%2, %1) {dilations=[2, 3], pads=[2, 0, 1, 3]} : f32[1,4,12,9]  "" @ ""
  output %3
}
)"},
    {"relu_conv_in_groups",
     "oh halo d21 oh + 2, halo d2 oh + 2; ow halo d31 ow + 2, halo d3 ow + 2",
     R"(graph "g" {
  %0 = input "x" : f32[2,6,7,9]
  %1 = weight "w" : f32[8,3,3,3]
  %2 = Relu(%0) : f32[2,6,7,9]  "" @ ""
  %3 = Conv(%2, %1) {group=2, pads=[1, 1, 1, 1]} : f32[2,8,7,9]  "" @ ""
  output %3
}
)"},
    {"relu_conv_depthwise_stride_3",
     "oh halo d21 3*oh, halo d2 3*oh; ow halo d31 3*ow, halo d3 3*ow",
     R"(graph "g" {
  %0 = input "x" : f32[1,5,14,17]
  %1 = weight "w" : f32[5,1,3,3]
  %2 = Relu(%0) : f32[1,5,14,17]  "" @ ""
  %3 = Conv(%2, %1) {group=5, pads=[1, 1, 1, 1], strides=[3, 3]} : f32[1,5,5,6]  "" @ ""
  output %3
}
)"},
    {"relu_conv_1d", "ow halo d21 ow + 8, halo d2 ow + 8",
     R"(graph "g" {
  %0 = input "x" : f32[2,4,37]
  %1 = weight "w" : f32[6,4,5]
  %2 = Relu(%0) : f32[2,4,37]  "" @ ""
  %3 = Conv(%2, %1) {dilations=[2], pads=[4, 3]} : f32[2,6,36]  "" @ ""
  output %3
}
)"},
    {"relu_conv_3d",
     "od halo d21 od + 1, halo d2 od + 1; oh halo d31 oh + 2, halo d3 oh + 2; ow halo d41 2*ow + "
     "1, halo d4 2*ow + 1",
     R"(graph "g" {
  %0 = input "x" : f32[1,2,5,6,8]
  %1 = weight "w" : f32[3,2,2,3,3]
  %2 = Relu(%0) : f32[1,2,5,6,8]  "" @ ""
  %3 = Conv(%2, %1) {pads=[1, 1, 1, 0, 1, 1], strides=[1, 1, 2]} : f32[1,3,5,6,4]  "" @ ""
  output %3
}
)"},
    {"pad_conv", "oh halo d2 oh + 2; ow halo d3 ow + 2",
     R"(graph "g" {
  %0 = input "x" : f32[1,3,8,9]
  %1 = weight "w" : f32[4,3,3,3]
  %2 = Pad(%0) {pads=[0, 0, 1, 2, 0, 0, 2, 1], constant_value=tensor f32[] {0x1p-1}} : f32[1,3,11,12]  "" @ ""
  %3 = Conv(%2, %1) : f32[1,4,9,10]  "" @ ""
  output %3
}
)"},
    // The padding is -infinity.
    {"sigmoid_max_pool",
     "oh halo d21 2*oh + 1, halo d2 2*oh + 1; ow halo d31 2*ow + 1, halo d3 2*ow + 1",
     R"(graph "g" {
  %0 = input "x" : f32[1,3,13,12]
  %1 = Sigmoid(%0) : f32[1,3,13,12]  "" @ ""
  %2 = MaxPool(%1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]} : f32[1,3,7,6]  "" @ ""
  output %2
}
)"},
    {"relu_average_pool", "oh halo d21 oh + 2, halo d2 oh + 2; ow halo d3 ow + 1",
     R"(graph "g" {
  %0 = input "x" : f32[1,3,11,10]
  %1 = Relu(%0) : f32[1,3,11,10]  "" @ ""
  %2 = AveragePool(%1) {kernel_shape=[3, 2], pads=[1, 0, 1, 0]} : f32[1,3,11,9]  "" @ ""
  output %2
}
)"},
    {"max_pool_without_overlap", "", R"(graph "g" {
  %0 = input "x" : f32[1,3,12,10]
  %1 = Tanh(%0) : f32[1,3,12,10]  "" @ ""
  %2 = MaxPool(%1) {kernel_shape=[2, 2], strides=[2, 2]} : f32[1,3,6,5]  "" @ ""
  output %2
}
)"},
    {"conv_relu_max_pool",
     "oh1 halo oh 2*oh1 + 1, halo d2 2*oh1 + 3; ow1 halo ow 2*ow1 + 1, halo d3 2*ow1 + 3",
     R"(graph "g" {
  %0 = input "x" : f32[1,3,15,14]
  %1 = weight "w" : f32[4,3,3,3]
  %2 = Conv(%0, %1) {pads=[1, 1, 1, 1]} : f32[1,4,15,14]  "" @ ""
  %3 = Relu(%2) : f32[1,4,15,14]  "" @ ""
  %4 = MaxPool(%3) {kernel_shape=[3, 3], strides=[2, 2]} : f32[1,4,7,6]  "" @ ""
  output %4
}
)"},
    {"max_pool_conv", "oh1 halo d2 oh1 + 2, halo oh oh1 + 2; ow1 halo d3 ow1 + 2, halo ow ow1 + 2",
     R"(graph "g" {
  %0 = input "x" : f32[1,3,15,14]
  %1 = weight "w" : f32[4,3,3,3]
  %2 = MaxPool(%0) {kernel_shape=[3, 3], strides=[2, 2]} : f32[1,3,7,6]  "" @ ""
  %3 = Conv(%2, %1) {pads=[1, 1, 1, 1]} : f32[1,4,7,6]  "" @ ""
  output %3
}
)"},
    // MobileNet: expand, depthwise, project.
    {"inverted_bottleneck",
     "oh1 halo d2 oh1 + 2, halo oh oh1 + 2; ow1 halo d3 ow1 + 2, halo ow ow1 + 2",
     R"(graph "g" {
  %0 = input "x" : f32[1,4,9,10]
  %1 = weight "expand" : f32[12,4,1,1]
  %2 = weight "depthwise" : f32[12,1,3,3]
  %3 = weight "project" : f32[4,12,1,1]
  %4 = Conv(%0, %1) : f32[1,12,9,10]  "" @ ""
  %5 = Sigmoid(%4) : f32[1,12,9,10]  "" @ ""
  %6 = Conv(%5, %2) {group=12, pads=[1, 1, 1, 1]} : f32[1,12,9,10]  "" @ ""
  %7 = Relu(%6) : f32[1,12,9,10]  "" @ ""
  %8 = Conv(%7, %3) : f32[1,4,9,10]  "" @ ""
  %9 = Add(%8, %0) : f32[1,4,9,10]  "" @ ""
  output %9
}
)"},
    {"depthwise_behind_pointwise_strided",
     "oh1 halo d2 2*oh1 + 1, halo oh 2*oh1 + 1; ow1 halo d3 2*ow1 + 1, halo ow 2*ow1 + 1",
     R"(graph "g" {
  %0 = input "x" : f32[1,4,9,11]
  %1 = weight "expand" : f32[6,4,1,1]
  %2 = weight "depthwise" : f32[6,1,3,3]
  %3 = Conv(%0, %1) : f32[1,6,9,11]  "" @ ""
  %4 = Relu(%3) : f32[1,6,9,11]  "" @ ""
  %5 = Conv(%4, %2) {group=6, pads=[1, 1, 1, 1], strides=[2, 2]} : f32[1,6,5,6]  "" @ ""
  output %5
}
)"},
    {"conv_relu_conv",
     "oh1 halo d21 oh1 + 2, halo oh oh1 + 2, halo d2 oh1 + 4; ow1 halo d31 ow1 + 2, halo ow ow1 + "
     "2, halo d3 ow1 + 4",
     R"(graph "g" {
  %0 = input "x" : f32[1,3,10,12]
  %1 = weight "v" : f32[4,3,3,3]
  %2 = weight "w" : f32[5,4,3,3]
  %3 = Conv(%0, %1) {pads=[1, 1, 1, 1]} : f32[1,4,10,12]  "" @ ""
  %4 = Relu(%3) : f32[1,4,10,12]  "" @ ""
  %5 = Conv(%4, %2) {pads=[1, 1, 1, 1]} : f32[1,5,10,12]  "" @ ""
  output %5
}
)"},
};

}  // namespace fusion
