# Libraries that come as PyPI wheels are taken from the virtual environment of the checkout; where a wheel is built (SKBUILD), from where
# pip has put what pyproject.toml asks for. One that is missing disables only the backend that needs it.

if(SKBUILD)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec('onnx').origin)))"
                  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE site_packages COMMAND_ERROR_IS_FATAL ANY)
else()
  file(GLOB site_packages ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages)
endif()

if(EXISTS ${site_packages}/openvino/cmake/OpenVINOConfig.cmake)
  find_package(OpenVINO QUIET PATHS ${site_packages}/openvino/cmake NO_DEFAULT_PATH)
endif()

if(EXISTS ${site_packages}/halide/lib64/libHalide.so)
  add_library(Halide::Halide SHARED IMPORTED)
  set_target_properties(Halide::Halide PROPERTIES IMPORTED_LOCATION ${site_packages}/halide/lib64/libHalide.so
                                                  INTERFACE_INCLUDE_DIRECTORIES ${site_packages}/halide/include)
endif()

set(ONNX_PROTO_DIRECTORY ${site_packages}/onnx)
set(ONNXRUNTIME_DIRECTORY ${site_packages}/onnxruntime)
