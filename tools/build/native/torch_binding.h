// Appended to every source of interface `torch`: what the runner calls from Python. The header names it; `forward` is
// the candidate's.

PYBIND11_MODULE(TORCH_EXTENSION_NAME, ridgeline_module) {
  ridgeline_module.def("forward", &forward, pybind11::call_guard<pybind11::gil_scoped_release>());
}
