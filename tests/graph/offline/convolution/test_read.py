"""Reading a convolution from its graph, and the refusals of other graphs."""

import asyncio

import pytest
from tests.graph.offline.subjects import BASELINES, HOPPER, subject_of

from ridgeline.graph.models.requests import IdeaList, IdeationRequest
from ridgeline.graph.offline import OfflineModel
from ridgeline.graph.offline.convolution.cpu.composer import ConvolutionCpu
from ridgeline.graph.offline.convolution.cpu.structures import Structure as CpuStructure
from ridgeline.graph.offline.convolution.cuda.composer import ConvolutionCuda
from ridgeline.graph.offline.convolution.cuda.structures import Structure as CudaStructure
from ridgeline.graph.offline.convolution.read import read_convolution
from ridgeline.graph.offline.program.ir import NotCovered
from ridgeline.tools.records.vocabulary import ReasonCode


def test_layer_has_its_extents_and_its_pool(convolutions):
    layer = read_convolution(convolutions["alexnet_relu_pool"].description)
    assert (layer.images, layer.channels, layer.size, layer.filters, layer.taps) == (2, 3, (67, 64), 96, (11, 11))
    assert (layer.stride, layer.padding, layer.dilation, layer.out_size) == ((4, 4), (2, 2), (1, 1), (16, 15))
    assert layer.pool.kernel == (3, 3) and layer.pool.stride == (2, 2) and layer.result_size == (7, 7)
    assert layer.bias.name == "conv_bias" and not layer.epilogue.is_plain


def test_pools_defaults_are_the_kernels(convolutions):
    pool = read_convolution(convolutions["ceiling"].description).pool
    assert (pool.kernel, pool.stride, pool.padding, pool.size) == ((2, 2), (2, 2), (0, 0), (5, 6))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("grouped", "2 groups"),
        ("transposed", "transposed"),
        ("one_dimension", "1 dimension"),
        ("two_layers", "several convolutions"),
        ("after_pool", "after the max pool"),
        ("before", "computed first: aten.relu"),
        ("summed", "reduction|aten.sum"),
    ],
)
def test_refusal_names_what_is_not_covered(convolutions, name, says):
    with pytest.raises(NotCovered, match=says):
        read_convolution(convolutions[name].description)


def test_products_are_no_convolutions(references):
    with pytest.raises(NotCovered, match="no convolution"):
        read_convolution(references["matmul"].description)


def test_tensor_cores_need_a_tolerance_that_rounds(convolutions):
    exact, rounded = (ConvolutionCuda(subject_of(convolutions["alexnet"], HOPPER, t)) for t in ("fp32", "tf32"))
    assert CudaStructure.MMA not in exact.applicable() and {CudaStructure.MMA, CudaStructure.WGMMA} <= {
        *rounded.applicable()
    }
    assert CudaStructure.POOL not in rounded.applicable() and rounded.base() == {
        CudaStructure.WGMMA,
        CudaStructure.VECTOR,
    }


def test_structures_of_the_pool_need_a_pool(convolutions):
    with_pool, without = (ConvolutionCpu(subject_of(convolutions[n])) for n in ("alexnet_relu_pool", "alexnet"))
    assert CpuStructure.POOL in with_pool.applicable() and CpuStructure.POOL not in without.applicable()


@pytest.mark.parametrize("device", [None, HOPPER])
def test_the_offline_model_proposes_for_a_convolution(convolutions, device):
    subject = subject_of(convolutions["alexnet_relu_pool"], *([device, "tf32"] if device else []))
    request = IdeationRequest(subject=subject, baselines=BASELINES, round=1, count=4, rng_seed=1)
    ideas = IdeaList.model_validate_json(asyncio.run(OfflineModel().propose(request)).text).ideas
    assert len({i.title for i in ideas}) >= 3


@pytest.mark.parametrize("code", [ReasonCode.WRONG_VALUES, ReasonCode.CUDA_ERROR, ReasonCode.NONE])
def test_suspects_are_all_structures_the_likely_first(convolutions, code):
    composer = ConvolutionCuda(subject_of(convolutions["alexnet"], HOPPER, "tf32"))
    assert sorted(composer.structures.suspects(code)) == sorted(composer.structures.texts)
