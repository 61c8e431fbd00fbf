"""The results: lines as they are known, and three files: gpu_check.json, gpu_check.txt, logs.tar.gz."""
import json
import os
import tarfile
import time


class Results:
    def __init__(self, folder, logs, minutes, smoke):
        self.folder, self.logs, self.smoke = folder, logs, smoke
        self.deadline = time.monotonic() + 60 * minutes
        self.part, self.part_deadline = "", self.deadline
        self.facts, self.items, self.tables, self.lines = {}, [], {}, []

    def tell(self, line):
        print(line, flush=True)
        self.lines.append(line)

    def about(self, facts):
        self.facts = facts
        for name, value in facts.items():
            self.tell("%-14s %s" % (name, value))

    def begin(self, part, seconds):
        self.part = part
        self.part_deadline = min(self.deadline, time.monotonic() + seconds)
        self.tell("\n== %s" % part)

    def seconds_left(self):
        """Returns the seconds left for this part; never 0, so that every command is started, and ended."""
        return max(1.0, self.part_deadline - time.monotonic())

    def path(self, name):
        """Returns the path of a log, or of a file that a program writes."""
        return os.path.join(self.logs, name)

    def add(self, name, status, detail=""):
        """Adds a check. `status` is passed, failed or skipped; `detail` has the outcome, or the reason."""
        self.items.append({"part": self.part, "name": name, "status": status, "detail": detail})
        self.tell("%-7s %s%s" % (status, name, ": " + detail if detail else ""))

    def check(self, name, good, detail=""):
        self.add(name, "passed" if good else "failed", detail)
        return good

    def table(self, name, value):
        """Adds figures to the file."""
        self.tables[name] = value

    def counts(self):
        return {status: sum(item["status"] == status for item in self.items)
                for status in ("passed", "failed", "skipped")}

    def write(self):
        """Writes the files with all results so far, in case the check is stopped in the middle."""
        with open(os.path.join(self.folder, "gpu_check.json"), "w") as file:
            json.dump({"about": self.facts, "smoke": self.smoke, "counts": self.counts(), "checks": self.items,
                       "figures": self.tables}, file, indent=1)
        with open(os.path.join(self.folder, "gpu_check.txt"), "w") as file:
            file.write("\n".join(self.lines) + "\n")
        with tarfile.open(os.path.join(self.folder, "logs.tar.gz"), "w:gz") as archive:
            archive.add(self.logs, arcname="logs")

    def end(self):
        counts = self.counts()
        self.tell("\n%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
        self.write()
        return 0 if counts["failed"] == 0 and counts["passed"] > 0 else 1
