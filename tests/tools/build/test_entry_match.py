import pytest

from ridgeline.tools.build.entry_match import takes_same_types

WANTED = 'extern "C" void run(const float* __restrict__ x, double scale, float* __restrict__ out, void* workspace)'


@pytest.mark.parametrize(
    "source",
    [
        "void run(const float* a, double, float* b, void*) {\n}",
        'static int help(int a) { return a; }\nextern "C" void run(const float *x,\n  double s, float *out, void *w)\n{}',
        "void run(SIGNATURE) { work(); }",
        "#define nothing here",
    ],
)
def test_kernel_for_the_same_types_is_kept_and_so_is_one_that_does_not_tell(source: str) -> None:
    assert takes_same_types(source, WANTED)


@pytest.mark.parametrize(
    "source",
    [
        "void run(const float* x, const bool* mask, float* out, void* workspace) {}",
        "void run(const float* x, float* out, void* workspace) {}",
        "void run(const float* x, double scale, float* out, void* workspace, cudaStream_t stream) {}",
    ],
)
def test_kernel_for_other_types_is_known_by_its_text(source: str) -> None:
    assert not takes_same_types(source, WANTED)
