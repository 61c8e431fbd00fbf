"""Finds the CUDA toolkit (CUDA_HOME, else /usr/local/cuda) or says that there is none.

@local_cuda//:defs.bzl then holds HAVE_CUDA, and @local_cuda//:cudart the static runtime library
(empty without a toolkit), so that one BUILD file serves both kinds of machine.
"""

_WITH = """
package(default_visibility = ["//visibility:public"])
cc_library(
    name = "cudart",
    srcs = ["lib/libcudart_static.a"],
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = ["-ldl", "-lrt", "-lpthread"],
)
filegroup(name = "nvcc", srcs = ["nvcc"])
"""

_WITHOUT = """
package(default_visibility = ["//visibility:public"])
cc_library(name = "cudart")
"""

def _cuda_configure(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    nvcc = ctx.path(home + "/bin/nvcc")
    archive = None
    for candidate in ["/lib64/libcudart_static.a", "/targets/x86_64-linux/lib/libcudart_static.a"]:
        if ctx.path(home + candidate).exists:
            archive = ctx.path(home + candidate)
            break
    have = nvcc.exists and archive != None
    if have:
        ctx.symlink(nvcc, "nvcc")
        ctx.symlink(archive, "lib/libcudart_static.a")
        ctx.symlink(ctx.path(home + "/include"), "include")
    ctx.file("BUILD", _WITH if have else _WITHOUT)
    ctx.file("defs.bzl", "HAVE_CUDA = %s\n" % have)

cuda_configure = repository_rule(
    implementation = _cuda_configure,
    local = True,
    environ = ["CUDA_HOME"],
)
