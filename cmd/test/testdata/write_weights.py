"""Writes the same weights in every form that `dtrain import` takes, from the model.npz of the folder named."""
import sys

import numpy
import safetensors.numpy

folder = sys.argv[1]
arrays = dict(numpy.load(folder + "/model.npz"))
del arrays["metadata"]
numpy.savez(folder + "/plain.npz", **arrays)
numpy.savez_compressed(folder + "/deflated.npz", **arrays)
numpy.savez(folder + "/double.npz", **{name: values.astype("f8") for name, values in arrays.items()})
numpy.savez(folder + "/columns.npz", **{name: numpy.asfortranarray(values) for name, values in arrays.items()})
sides = {name: values.reshape(values.shape[0], 1, -1) for name, values in arrays.items()}
numpy.savez(folder + "/sides.npz", **{name: numpy.asfortranarray(values) for name, values in sides.items()})
safetensors.numpy.save_file(arrays, folder + "/plain.safetensors")
torch = {}
for name, values in arrays.items():
    torch["fc" + name[-1] + (".weight" if "W" in name else ".bias")] = numpy.ascontiguousarray(values.T)
torch["step"] = numpy.int64([3])
safetensors.numpy.save_file(torch, folder + "/torch.safetensors")
half = {name: values.astype("f2") for name, values in arrays.items()}
numpy.savez(folder + "/half.npz", **half)
safetensors.numpy.save_file(half, folder + "/half.safetensors")
