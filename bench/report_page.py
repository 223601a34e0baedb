"""Seconds until the page of `collage explain --html` is loaded and painted in headless Chromium: for each program, and for one of 2 000
operators made up from the first.

Usage: report_page.py [--collage build/release/bin/collage] PROGRAM..."""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/tools"))

import browser
import report_pages

# An odd number, so that the median is one of them.
OPENINGS = 9


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", type=pathlib.Path, metavar="PROGRAM")
    parser.add_argument("--collage", default="build/release/bin/collage")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pages = []
        for number, program in enumerate(options.programs):
            page = pathlib.Path(folder) / f"{number}.html"
            subprocess.run([options.collage, "explain", program, "--html", page], check=True)
            pages.append((program.name, page))
        many = pathlib.Path(folder) / "many.html"
        many.write_text(report_pages.page_of_many_operators(pages[0][1].read_text()))
        operators = report_pages.LAYERS * report_pages.OPERATORS_OF_LAYER
        window = browser.Browser()
        try:
            for name, page in [*pages, (f"{operators} operators", many)]:
                seconds = sorted(window.open(page) for _ in range(OPENINGS))
                print(f"{name}: {page.stat().st_size / 1e6:.1f} MB, opens in {statistics.median(seconds):.2f} s "
                      f"({seconds[0]:.2f} to {seconds[-1]:.2f} s, {OPENINGS} times)")
        finally:
            window.close()


if __name__ == "__main__":
    main()
