"""What was checked: lines as they come, and three files: gpu_check.json, gpu_check.txt, logs.tar.gz."""
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
        """Of this part; never 0, so that a command is begun, and ended, rather than forgotten."""
        return max(1.0, self.part_deadline - time.monotonic())

    def path(self, name):
        """Of a log, or of what a program writes."""
        return os.path.join(self.logs, name)

    def add(self, name, status, detail=""):
        """status: passed, failed or skipped; `detail` says what was seen, or why it was skipped."""
        self.items.append({"part": self.part, "name": name, "status": status, "detail": detail})
        self.tell("%-7s %s%s" % (status, name, ": " + detail if detail else ""))

    def check(self, name, good, detail=""):
        self.add(name, "passed" if good else "failed", detail)
        return good

    def table(self, name, value):
        """Figures for the file."""
        self.tables[name] = value

    def counts(self):
        return {status: sum(item["status"] == status for item in self.items)
                for status in ("passed", "failed", "skipped")}

    def write(self):
        """All so far: whoever is stopped in the middle leaves that."""
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
