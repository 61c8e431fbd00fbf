"""Checks a page of `dtrain report` and prints it as JSON.

Usage: read_page.py FILE
{"problems": what is wrong with the page, "text": the text that a reader sees, "rows": of all tables,
 "tiles": {name: value}, "charts": [title], "pictures": how many}
"""
import html.parser
import json
import re
import sys
import zlib
import base64

VOID = {"meta", "link", "img", "br"}
# An attribute that would load or run something.
OUTSIDE = re.compile(r"^(?:src|href|xlink:href|action|srcset|on\w+)$")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.problems, self.text, self.rows = [], [], [], []
        self.tiles, self.charts, self.pictures, self.ids = {}, [], 0, []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))
        if tag == "script":
            self.problems.append("a script")
        for name, value in attrs:
            if OUTSIDE.match(name) and not (value or "").startswith("data:"):
                self.problems.append(f"{tag} {name}={value}")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "img":
            self.pictures += 1
            self.check_picture(dict(attrs)["src"])

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.problems.append(f"</{tag}> closes {self.open[-1:]}")
        else:
            self.open.pop()

    def handle_data(self, data):
        tags = [tag for tag, _ in self.open]
        if not tags or tags[-1] == "style":
            return
        self.text.append(data)
        if "tr" in tags and ("td" in tags or "th" in tags):
            self.rows[-1][-1] += data
        if tags[-2:] == ["figcaption", "b"]:
            self.charts.append(data)
        if tags[-2:] == ["div", "b"]:
            self.value = data
        if tags[-2:] == ["div", "span"] and tags[-3:-2] == ["div"] and hasattr(self, "value"):
            self.tiles.setdefault(data, self.value)

    def check_picture(self, uri):
        data = base64.b64decode(uri.split(",", 1)[1])
        at, kinds = 8, []
        while at < len(data):
            size = int.from_bytes(data[at : at + 4], "big")
            kinds.append(data[at + 4 : at + 8])
            if zlib.crc32(data[at + 4 : at + 8 + size]) != int.from_bytes(data[at + 8 + size : at + 12 + size], "big"):
                self.problems.append("a picture with a wrong checksum")
            at += 12 + size
        if kinds != [b"IHDR", b"IDAT", b"IEND"]:
            self.problems.append(f"a picture of {kinds}")


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    page = Page()
    page.feed(text)
    page.close()
    problems = page.problems + [f"<{tag}> is open" for tag, _ in page.open]
    problems += [f"url {found}" for found in re.findall(r"url\(|@import|https?://\S+", text)]
    problems += [f"a number: {found}" for found in re.findall(r'(?:d|style)="[^"]*(?:nan|inf)[^"]*"', text)]
    json.dump({"problems": problems, "text": "".join(page.text), "rows": page.rows, "tiles": page.tiles,
               "charts": page.charts, "pictures": page.pictures}, sys.stdout)


main()
