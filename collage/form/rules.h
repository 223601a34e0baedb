#pragma once

// One function a rule, and what they share.

#include <string_view>

#include "collage/form/form.h"

namespace collage {

/// nn.conv2d_transpose of stride s as nn.conv2d of stride 1 with s * s times the channels, one group of them for each place within a
/// block of s * s results, nn.depth_to_space, and a crop. A tap of the original is one of the new kernel, so a kernel of a multiple of s
/// does no more work than before.
FormRule TransposedConvolutionForm();

/// nn.conv2d_transpose or nn.conv3d_transpose as the product of its weights, transposed once, with the data's places as columns, and
/// nn.col2im, which adds up what overlaps. Both reshapes are views.
FormRule TransposedConvolutionProductForm();

/// nn.conv3d as nn.conv2d over planes whose channels are all channels of all depths: weights are zero where no tap of the kernel reaches
/// from one depth to another, so that is for data of few depths. Both reshapes are views.
FormRule ShortDepthForm();

/// nn.conv3d that reaches along the depth alone as nn.conv2d over depth times plane.
FormRule DepthAloneForm();

/// nn.conv2d, or nn.dense or nn.matmul with a constant, of one tensor and alike but for the number of their results, as one and nn.split.
FormRule SiblingConvolutionsForm();
FormRule SiblingDensesForm();
FormRule SiblingProductsForm();

/// nn.conv2d with a kernel of one element and a stride as one of every stride-th element.
FormRule StridedPointwiseForm();

/// nn.conv2d with a kernel of one element as the product of its weights with the planes as rows.
FormRule PointwiseProductForm();

/// nn.conv2d whose kernel is all of its data, such as those of squeeze-and-excite, as nn.dense.
FormRule WholePlaneForm();

/// nn.avg_pool2d, or nn.global_avg_pool2d, of nn.conv2d with a kernel of one element, with a bias or without, the other way round: an
/// average of sums is the sum of averages, and there are fewer elements to multiply.
FormRule PooledPointwiseForm();
FormRule GloballyPooledPointwiseForm();

/// nn.conv2d in groups of few channels with several groups in one, zero between them: up to as many channels as fill a vector.
FormRule MergedGroupsForm();

/// nn.matmul, nn.dense or nn.conv2d in 32-bit integers of bytes, less a constant zero point or as they are, with constant weights, in
/// float32: exact where no sum needs more than 24 bits.
FormRule IntegerProductForm();

/// A cheap operator that several read and that reads fewer bytes than it writes (a broadcast, resizing), with the cheap ones in front of it
/// that serve it alone, computed by each of those who read it: so nobody has to store it. (Overlaps that are paid for: Korch, Hu et al.,
/// ASPLOS 2024.)
FormRule RecomputationForm();

/// A call of the operator of that name, whose arguments must fit.
Result<Expr> CallOp(std::string_view op, std::vector<Expr> arguments, Attributes attributes = {});

/// A constant's elements in another order and shape: the result's element i is element `source(i)` of the tensor, or zero where that is
/// negative. Of whatever type; both counted in row-major order.
Tensor Rearranged(const Tensor& tensor, Shape shape, const std::function<int64_t(int64_t)>& source);

}  // namespace collage
