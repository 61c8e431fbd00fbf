"""Applies exported changes to older exports as docs/models.md says: of each FOLDER changes.safetensors to
old.safetensors. Prints for each whether that gives the bits of new.safetensors, and how many keys left."""
import re
import sys

from safetensors import safe_open
from safetensors.numpy import load_file

PAGE = open("docs/models.md", encoding="utf-8").read()
DOCS = {}
exec(re.search("^import numpy  .*?(?=^```)", PAGE, re.M | re.S).group(), DOCS)

for folder in sys.argv[1:]:
    old, changes, new = (load_file(f"{folder}/{name}.safetensors") for name in ("old", "changes", "new"))
    made = DOCS["apply_changes"](old, changes)
    assert made.keys() == new.keys(), (made.keys(), new.keys())
    same = all(made[name].dtype == new[name].dtype and made[name].tobytes() == new[name].tobytes() for name in new)
    with safe_open(f"{folder}/old.safetensors", "numpy") as of, safe_open(f"{folder}/changes.safetensors", "numpy") as by:
        assert by.metadata()["since_step"] == of.metadata()["global_step"]
    print("same" if same else "other", len(changes["table.left"]))
