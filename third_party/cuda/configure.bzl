"""Finds the CUDA toolkit (CUDA_HOME, else /usr/local/cuda) or says that there is none.

@local_cuda//:defs.bzl then holds HAVE_CUDA, and with a toolkit NVCC, the path of its compiler, NVCC_VERSION, and
GENCODE, for which devices to compile and how to compress that. @local_cuda//:cudart is the static runtime library with the headers (empty without a
toolkit), so that one BUILD file serves both kinds of machine.
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
"""

_WITHOUT = """
package(default_visibility = ["//visibility:public"])
cc_library(name = "cudart")
"""

# Machine code for A100 (and all of Ampere and Ada), H100 and H200, and consumer Blackwell. What the driver
# compiles itself, for all between and after (each GPU takes the newest that is not newer than itself): that of
# Turing (the oldest, gpu/cuda/runtime.h says so too), of Hopper, which B200 and the like take, and of the newest.
_MACHINES = ["80", "90", "120"]
_PORTABLE = ["75", "90"]

def _archive(ctx, home):
    for candidate in ["/lib64/libcudart_static.a", "/targets/x86_64-linux/lib/libcudart_static.a"]:
        if ctx.path(home + candidate).exists:
            return ctx.path(home + candidate)
    return None

def _gencode(ctx, nvcc):
    result = ctx.execute([nvcc, "--list-gpu-code"])
    known = [word.replace("sm_", "") for word in result.stdout.split("\n")]
    machines = [machine for machine in _MACHINES if machine in known]
    if not machines:
        fail("%s --list-gpu-code names none of sm_%s: %s" % (nvcc, ", sm_".join(_MACHINES), result.stderr))
    flags = ["-gencode=arch=compute_{0},code=sm_{0}".format(machine) for machine in machines]
    newest = [machines[-1]] if machines[-1] not in _PORTABLE else []
    for portable in [portable for portable in _PORTABLE if portable in known] + newest:
        flags.append("-gencode=arch=compute_{0},code=compute_{0}".format(portable))
    return flags

# The best compression needs a driver of CUDA 12.4 or newer, which a toolkit that has it needs anyway.
def _compression(ctx, nvcc):
    newer = "--compress-mode" in ctx.execute([nvcc, "--help"]).stdout
    return "--compress-mode=size" if newer else "-Xfatbin=-compress-all"

def _cuda_configure(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    nvcc = ctx.path(home + "/bin/nvcc")
    archive = _archive(ctx, home)
    headers = ["/include/cuda_runtime_api.h", "/include/cublas_v2.h"]
    have = nvcc.exists and archive != None and all([ctx.path(home + header).exists for header in headers])
    gencode = []
    version = ""
    if have:
        version = ctx.execute([nvcc, "--version"]).stdout.strip().split("\n")[-1]
        gencode = _gencode(ctx, nvcc) + [_compression(ctx, nvcc)]
        ctx.symlink(archive, "lib/libcudart_static.a")
        ctx.symlink(ctx.path(home + "/include"), "include")
    ctx.file("BUILD", _WITH if have else _WITHOUT)
    ctx.file("defs.bzl", "HAVE_CUDA = %s\nNVCC = %r\nNVCC_VERSION = %r\nGENCODE = %r\n" % (have, str(nvcc), version, gencode))

cuda_configure = repository_rule(
    implementation = _cuda_configure,
    local = True,
    environ = ["CUDA_HOME"],
)
