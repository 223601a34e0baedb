"""The page of `collage explain --html`, as text and in a real browser. Usage: report_page_test.py BINARY [unittest arguments]"""

import json
import unittest

import onnx
from onnx import TensorProto, helper

import browser
from command_line import CommandLineTestCase, main
from report_pages import data_of, many_operators, page_of_many_operators, page_with


class PageTest(CommandLineTestCase):
    def page_of(self, program, *words):
        path = self.folder / "report.html"
        done = self.collage("explain", program, "--html", path, *words)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        return path

    def test_it_is_one_file_that_names_no_other(self):
        page = self.page_of(self.program).read_text()
        without_namespace = page.replace("http://www.w3.org/2000/svg", "")
        for word in ("http:", "https:", "src=", "@import", "url(//"):
            self.assertNotIn(word, without_namespace)
        self.assertIn("default-src 'none'", page)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["report.html"])

    def test_it_has_what_the_report_says_and_the_steps_of_a_run(self):
        profile = data_of(self.page_of(self.program).read_text())["profiles"][0]
        report = json.loads(self.collage("explain", self.program, "--json").stdout)
        self.assertEqual(report.pop("model_metadata")["graph_name"], "small")  # of the model, not of its plan
        self.assertEqual(profile["report"], report)
        self.assertTrue(all(entry["work"]["bytes"] > 0 for entry in report["plan"]))
        symbols = {step["name"] for step in profile["run"]["steps"] if step["kind"] == "kernel"}
        self.assertEqual(symbols, {entry["partition"] for entry in report["plan"]})
        self.assertTrue(profile["problem"]["alone"])

    def test_without_a_run_it_says_so(self):
        run = data_of(self.page_of(self.program, "--predicted").read_text())["profiles"][0]["run"]
        self.assertNotIn("steps", run)
        self.assertIn("--predicted", run["why_not"])

    def test_what_a_node_would_cost_elsewhere_is_what_a_search_says(self):
        problem = data_of(self.page_of(self.program, "--predicted").read_text())["profiles"][0]["problem"]
        asked = 0
        for node, rows in zip(problem["nodes"], problem["elsewhere"]):
            for row in rows:
                if row["known"] != "price":
                    continue
                done = self.collage("explain", self.program, "--json", "--pin", f"{node['name']}={row['backend']}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertAlmostEqual(row["extra_us"], json.loads(done.stdout)["after"]["cost_us"] - problem["chosen_us"], places=3)
                asked += 1
        self.assertGreater(asked, 0)

    def test_what_cannot_be_written_or_read_is_an_error_and_leaves_nothing(self):
        self.assert_user_error(self.collage("explain", self.program, "--html", self.folder / "no" / "r.html"), "r.html")
        self.assert_user_error(self.collage("explain", self.model, "--html", self.folder / "r.html"), "is no compiled file")
        self.assert_user_error(self.collage("explain", self.program, "--html", "r.html", "--json"), "--json")
        self.assert_user_error(self.collage("explain", self.program, "--predicted"), "--html")
        self.assertEqual(list(self.folder.iterdir()), [])


@unittest.skipUnless(browser.BINARY, "there is no chromium (scripts/setup)")
class BrowserTest(CommandLineTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.page = cls.program.with_suffix(".html")
        assert cls.collage_in(cls.page.parent, "explain", cls.program, "--html", cls.page).returncode == 0
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        self.browser.errors.clear()
        self.browser.size(1400, 900)

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])

    def text(self, selector):
        return self.browser.evaluate(f"document.querySelector({selector!r})?.innerText ?? ''")

    def test_two_clicks_say_who_runs_a_node_why_and_what_it_would_cost_elsewhere(self):
        self.browser.open(self.page)
        self.browser.click("document.querySelector('.box.leaf:not(.host)')")
        entry = data_of(self.page.read_text())["profiles"][0]["report"]["plan"][0]
        details = self.text("#details")
        for part in (entry["backend"], entry["variant"], "predicted", "It is part of", "elsewhere"):
            self.assertIn(part, details)
        self.browser.click("document.querySelector('.elsewhere button')")
        self.assertIn("--pin", self.text("#changes"))
        self.assertGreater(self.browser.evaluate("document.querySelectorAll('.box.changes').length"), 0)

    def test_every_view_draws_at_both_widths(self):
        for width in (1400, 700):
            self.browser.size(width, 900)
            self.browser.open(self.page)
            for tab in range(5):
                self.browser.click(f"document.querySelectorAll('#tabs button')[{tab}]")
                self.assertGreater(len(self.text("#view")), 40)
                self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)

    def test_one_plan_has_one_predicted_time_and_the_drift_beside_it(self):
        page = self.page.read_text()
        data = data_of(page)
        report, problem = data["profiles"][0]["report"], data["profiles"][0]["problem"]
        # As if the machine had run twice as fast in the race as when prices were taken: 4 ms at prices.
        report.update(estimated_us=2000, drift=0.5)
        problem["chosen_us"] = 4000
        shown = self.folder / "drift.html"
        shown.write_text(page_with(page, data))
        self.browser.open(shown)
        self.assertIn("4.000 ms\npredicted; in the race all took 0.50 × their prices", self.text("#summary"))
        self.browser.click("document.querySelectorAll('#tabs button')[2]")
        view = self.text("#view")
        self.assertIn("ran 0.50 times as slowly as when the prices were taken", view)
        self.assertIn("the plan’s predicted 4.000 ms are 2.000 ms in this race", view)
        self.assertIn("4.000 ms", self.text(".plan .total"))

    def first_operators(self, count):
        data = many_operators(data_of(self.page.read_text()))
        report, problem = data["profiles"][0]["report"], data["profiles"][0]["problem"]
        for part, lists in ((report, ("plan", "operators")), (problem, ("nodes", "chosen", "kernels", "elsewhere"))):
            for name in lists:
                part[name] = part[name][:count]
        tensors = problem["tensors"][:count]
        problem["tensors"] = [[made, [reader for reader in readers if reader < count], 0] for made, readers, _ in tensors]
        return data

    def test_area_is_time_in_the_graph(self):
        data = self.first_operators(24)
        for place, entry in enumerate(data["profiles"][0]["report"]["plan"]):
            entry["cost_us"] = 4000.0 + 6000 * (place % 3)
        shown = self.folder / "areas.html"
        shown.write_text(page_with(self.page.read_text(), data))
        self.browser.open(shown)
        self.browser.click("[...document.querySelectorAll('.bar button')].find(button => button.innerText === 'Fold all')")
        areas = "[...document.querySelectorAll('.box')].map(b => [b.getAttribute('aria-label'), [...b.querySelectorAll('.area')]" \
                ".reduce((sum, a) => sum + a.getAttribute('width') * a.getAttribute('height'), 0)])"
        for kind in ("leaf", "fold"):
            self.assertGreater(self.browser.evaluate(f"document.querySelectorAll('.box.{kind}').length"), 1)
        rates = []
        for label, area in self.browser.evaluate(areas):
            value, unit = label.rsplit(", ", 1)[1].split(" ")
            self.assertEqual(unit, "ms")
            rates.append(area / float(value))
        self.assertAlmostEqual(max(rates), min(rates), places=2)
        self.assertIn("area is predicted time", self.text("#unit"))

    def test_of_a_wide_graph_the_first_box_is_in_sight(self):
        data = self.first_operators(20)
        data["profiles"][0]["problem"]["tensors"] = [[0, list(range(1, 20)), 0]]
        wide = self.folder / "wide.html"
        wide.write_text(page_with(self.page.read_text(), data))
        self.browser.size(700, 900)
        self.browser.open(wide)
        self.assertGreater(self.browser.evaluate("document.querySelector('.canvas').scrollWidth"), 1400)
        ends = "(r => [r.left, r.right])(document.querySelector('.box').getBoundingClientRect())"
        left, right = self.browser.evaluate(ends)
        self.assertTrue(0 <= left and right <= 700, (left, right))

    def test_of_too_few_rounds_no_noise_is_shown(self):
        page = self.page.read_text()
        for noise, words in ((0.0125, "differed by 1.3%"), (None, "too few rounds to tell what is noise")):
            data = data_of(page)
            data["profiles"][0]["report"]["noise"] = noise
            shown = self.folder / "noise.html"
            shown.write_text(page_with(page, data))
            self.browser.open(shown)
            for tab in range(5):
                self.browser.click(f"document.querySelectorAll('#tabs button')[{tab}]")
                if "raced end to end" in self.text("#view"):
                    break
            self.assertIn(words, self.text("#view"))

    def test_the_keyboard_is_enough(self):
        self.browser.open(self.page)
        self.browser.press("/")
        self.browser.type("second")
        self.browser.press("Enter")
        self.assertIn("second", self.text("#details h3:last-of-type, #details"))
        self.browser.evaluate("document.querySelector('#tabs [aria-selected=true]').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.text("#tabs [aria-selected=true]"), "Time line")
        self.browser.press("ArrowLeft")
        self.browser.evaluate("document.querySelector('.box[tabindex=\"0\"]').focus()")
        self.assertNotEqual(self.browser.evaluate("getComputedStyle(document.querySelector('.box:focus-visible .body') ?? document.body).strokeWidth"), "1px")
        self.browser.press("ArrowUp")
        self.browser.press("ArrowDown")
        self.browser.press("Enter")
        self.assertTrue(self.browser.evaluate("document.activeElement.matches('.box.selected')"))

    def test_a_program_of_two_thousand_operators_opens_folded(self):
        big = self.folder / "big.html"
        big.write_text(page_of_many_operators(self.page.read_text()))
        self.browser.open(big)
        self.assertLessEqual(self.browser.evaluate("document.querySelectorAll('.box').length"), 200)
        self.browser.press("/")
        self.browser.type("layer123/part4")
        self.browser.press("Enter")
        self.assertIn("/layer123/part4/Conv", self.text("#details"))
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('.box.selected').length"), 1)

    def test_names_cannot_break_the_page(self):
        name = "</script><img src=x onerror=alert(1)><!--<script>"
        nodes = [helper.make_node("Relu", ["x"], ["y"], name=name), helper.make_node("Exp", ["y"], ["z"], name="'\"&amp;")]
        ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, [4, 64]) for end in "xz"]
        model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.save(model, self.folder / "names.onnx")
        program = self.folder / "names.collage"
        done = self.compile(self.folder / "names.onnx", output=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.collage("explain", program, "--html", self.folder / "names.html").returncode, 0)
        self.browser.open(self.folder / "names.html")
        self.browser.click("document.querySelector('.box')")
        self.assertIn(name, self.text("#details"))
        self.assertEqual(self.browser.evaluate("document.images.length"), 0)


if __name__ == "__main__":
    main()
