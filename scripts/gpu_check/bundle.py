"""The programs of scripts/gpu_bundle.sh, and how they find cuBLAS here."""
import glob
import os
import subprocess
import sys
import tarfile

TOOLKIT_FOLDERS = ["lib64", "targets/x86_64-linux/lib"]
# Directories of a container's driver that may be missing in the loader's cache.
DRIVER_FOLDER = "/usr/local/nvidia/lib64"


class Unusable(Exception):
    """Nothing can be checked here; the text says why."""


def cublas_folder():
    """Returns the directory of a libcublas of CUDA 13 or 12 that the loader would not find; empty: none."""
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    folders = [os.path.join(home, folder) for home in homes if home for folder in TOOLKIT_FOLDERS]
    for path in sys.path:
        folders += sorted(glob.glob(os.path.join(path, "nvidia", "*", "lib")))
    for name in ["libcublas.so.13", "libcublas.so.12"]:
        for folder in folders:
            if os.path.exists(os.path.join(folder, name)):
                return folder
    return ""


class Bundle:
    """A bundle in `folder`, packed or unpacked; it is unpacked into `scratch`."""

    def __init__(self, folder, scratch):
        self.folder = os.path.abspath(folder)
        packed = self.path("bundle.tar.xz")
        if os.path.exists(packed):
            self.folder = scratch
            with tarfile.open(packed) as archive:
                archive.extractall(scratch)
        if not os.path.exists(self.path("cmd/dtrain")):
            raise Unusable("%s has no bundle.tar.xz: make it with scripts/gpu_bundle.sh on a machine with Bazel"
                           % folder)
        self.cublas = cublas_folder()

    def path(self, name):
        return os.path.join(self.folder, name)

    def about(self):
        with open(self.path("about")) as file:
            return file.read().strip().replace("\n", "; ")

    def data(self):
        """Returns the directory with mnist/; empty if there is none."""
        for folder in [self.path("data"), os.environ.get("DTRAIN_SHARED_DATA", ""), "../shared/data"]:
            if folder and os.path.isdir(os.path.join(folder, "mnist")):
                return os.path.abspath(folder)
        return ""

    def library_path(self):
        folders = [self.path("lib"), self.cublas, os.environ.get("LD_LIBRARY_PATH", "")]
        if os.path.isdir(DRIVER_FOLDER):
            folders.append(DRIVER_FOLDER)
        return ":".join(folder for folder in folders if folder)

    def run(self, command, seconds, **options):
        """Runs a program of the bundle, by its path in it, or one of the machine by an absolute path. Raises
        subprocess.TimeoutExpired."""
        command = [self.path(command[0]) if not os.path.isabs(command[0]) else command[0]] + command[1:]
        environment = dict(os.environ, LD_LIBRARY_PATH=self.library_path())
        return subprocess.run(command, env=environment, timeout=seconds, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, **options)

    def output(self, command, seconds):
        """Returns standard output; raises Unusable if the program fails."""
        try:
            done = self.run(command, seconds, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unusable("%s: %s" % (command[0], error))
        if done.returncode != 0:
            raise Unusable("%s ended with %d: %s" % (command[0], done.returncode, done.stderr.strip()))
        return done.stdout


def last_words(text, count=12):
    return "\n".join((text or "").strip().splitlines()[-count:])
