"""What is done once in a run is compiled for size: it compiles faster so, and the program is smaller."""

SMALL = ["-Os"]

def part_small_library(name, srcs, hdrs, small, deps, **kwargs):
    """A cc_library of which the sources `small` are compiled with SMALL.

    Both halves use each other, and the linker looks through a library once: it takes all objects of the first half
    (alwayslink), and then finds what these use in the second.
    """
    for source in small:
        if source not in srcs:
            fail("%s: no source is called %s" % (name, source))
    native.cc_library(
        name = name + "_small",
        srcs = small,
        hdrs = hdrs,
        copts = SMALL,
        visibility = ["//visibility:private"],
        deps = deps,
    )
    native.cc_library(
        name = name,
        srcs = [source for source in srcs if source not in small],
        hdrs = hdrs,
        alwayslink = True,
        deps = deps + [":" + name + "_small"],
        **kwargs
    )
