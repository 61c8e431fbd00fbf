"""Gives `dtrain predict` (its path and arguments are those of this program) rows through a pipe one by one, each
only when the one before has been answered. Prints what came back.
"""
import select
import subprocess
import sys

rows = ["\ufeff1,2\n", "3,4\n", "0.5,-1\n"]  # with a byte order mark, as files may begin
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def read_line():
    assert select.select([child.stdout], [], [], 60)[0], "no answer in 60 s"
    return child.stdout.readline().decode()


for number, row in enumerate(rows):
    child.stdin.write(row.encode())
    child.stdin.flush()
    if number == 0:
        print(read_line(), end="")  # the header
    print(read_line(), end="")
child.stdin.close()
assert child.stdout.read() == b""
sys.exit(child.wait())
