"""The report in a real browser: text and controls agree with the numbers of Python."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hostile import NAMES
from same_tables import assert_same_table

import softcal as sc
from softcal.datasets import lidc_malignancy

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script>"
MODELS = ("prob_rf_all", "prob_lr_geometry")


class Opened:
    """A report opened from disk, with its console messages, errors, and requests."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page: Page = browser.new_page(**options)
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: self.troubles.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body[data-ready=yes]")
        self.own = path.as_uri()

    def choose_bins(self, bins: int) -> None:
        choices = self.page.evaluate("report.choices")
        self.page.locator("#bins").fill(str(choices.index(bins)))

    def smece(self, model: int) -> str | None:
        return self.page.locator(f"#smece-{model}").text_content()

    def interval(self, model: int) -> str | None:
        return self.page.locator(f"#interval-{model}").text_content()


@pytest.fixture(scope="module")
def lidc_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nodules = lidc_malignancy()
    path = tmp_path_factory.mktemp("report") / "report.html"
    sc.write_report(
        path, nodules["soft_malignant"], {name: nodules[name] for name in MODELS},
        n_votes=nodules["n_readers"], by=nodules["n_readers"],
    )  # fmt: skip
    return path


@pytest.mark.parametrize("bins", [2, 10, 15, 100])
@pytest.mark.parametrize("labels", ["soft", "hard"])
def test_numbers_in_browser_equal_python(
    browser: Browser, lidc_report: Path, bins: int, labels: str
) -> None:
    opened = Opened(browser, lidc_report)
    opened.choose_bins(bins)
    opened.page.locator(f"input[name=labels][value={labels}]").check()
    nodules = lidc_malignancy()
    y = nodules["soft_malignant"]
    for i, name in enumerate(MODELS):
        rel = sc.reliability(
            sc.harden(y) if labels == "hard" else y, nodules[name], bins=bins,
            n_votes=nodules["n_readers"],
        )  # fmt: skip
        found = sc.smece_interval(rel)
        assert opened.smece(i) == f"{found.value:.4f}"
        assert opened.interval(i) == f"{found.low:.3f} to {found.high:.3f}"
    assert opened.page.locator("#bins-shown").text_content() == str(bins)
    assert opened.troubles == []
    assert opened.requests == [opened.own]


def test_bars_in_browser_equal_python(browser: Browser, lidc_report: Path) -> None:
    opened = Opened(browser, lidc_report)
    opened.choose_bins(50)
    nodules = lidc_malignancy()
    rel = sc.reliability(
        nodules["soft_malignant"], nodules["prob_rf_all"], bins=50, n_votes=nodules["n_readers"]
    )
    low, high = sc.gap_intervals(rel)
    drawn = [
        row for row in opened.page.evaluate("views.diagram.data('bins')")
        if row["model"] == "prob_rf_all"
    ]  # fmt: skip
    filled = rel.count > 0
    assert [row["rows"] for row in drawn] == rel.count[filled].tolist()
    part = rel.sums.residual / rel.sums.weight.sum()
    for column, right in {
        "x": rel.mean_prob, "y": rel.mean_label, "gapLow": low, "gapHigh": high, "part": part,
        "left": rel.bins.edges[:-1], "right": rel.bins.edges[1:],
    }.items():  # fmt: skip
        assert [row[column] for row in drawn] == pytest.approx(right[filled], rel=1e-5, abs=1e-9)
    shown = opened.page.locator("#bin-rows tr").all_text_contents()
    assert len(shown) == 2 + len(opened.page.evaluate("views.diagram.data('bins')"))


def test_the_page_explains_a_value_above_its_interval_where_it_happens(
    browser: Browser, tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.random(1000)
    sc.write_report(tmp_path / "r.html", (rng.random(1000) < p).astype(float), {"model": p})
    opened = Opened(browser, tmp_path / "r.html")
    above = opened.page.locator("#above")
    assert not above.is_visible()
    opened.choose_bins(100)
    low, high = map(float, str(opened.interval(0)).split(" to "))
    assert low < high < float(str(opened.smece(0)))
    assert above.is_visible()
    assert "The error is above its interval" in str(above.text_content())
    assert "SMECE" not in opened.page.locator("body").inner_text()  # labels are 0 or 1
    assert "ECE" in opened.page.locator("#sweep svg text").all_text_contents()
    opened.choose_bins(10)
    assert not above.is_visible()


def test_a_model_can_be_hidden_by_keyboard(browser: Browser, lidc_report: Path) -> None:
    opened = Opened(browser, lidc_report)
    opened.page.locator("#model-0").focus()
    opened.page.keyboard.press("Space")
    rows = opened.page.evaluate("views.diagram.data('bins')")
    assert {row["model"] for row in rows} == {"prob_lr_geometry"}
    opened.page.locator("#bins").focus()
    before = opened.page.locator("#bins-shown").text_content()
    opened.page.keyboard.press("ArrowRight")
    assert opened.page.locator("#bins-shown").text_content() != before
    assert opened.troubles == []


def test_downloads_contain_the_tables(browser: Browser, lidc_report: Path) -> None:
    opened = Opened(browser, lidc_report)
    nodules = lidc_malignancy()
    y, m = nodules["soft_malignant"], nodules["n_readers"]
    with opened.page.expect_download() as waiting:
        opened.page.locator("#save-json").click()
    assert waiting.value.suggested_filename == "tables.softcal"
    tables = sc.load(waiting.value.path())
    for name in MODELS:
        fine = sc.reliability(y, nodules[name], bins=tables.grid, n_votes=m)
        assert_same_table(tables.coarsen(tables.grid)[name], fine)
        assert tables[name].n == 1377
    with opened.page.expect_download() as waiting:
        opened.page.locator("#save-csv").click()
    rows = list(csv.DictReader(waiting.value.path().read_text(encoding="utf-8").splitlines()))
    rel = sc.reliability(y, nodules["prob_rf_all"])
    assert [float(row["gap"]) for row in rows[:10]] == pytest.approx(rel.gap, rel=1e-5)
    assert opened.troubles == []


def downloaded(opened: Opened, button: str) -> tuple[str, str]:
    with opened.page.expect_download() as waiting:
        opened.page.locator(button).click()
    return waiting.value.suggested_filename, waiting.value.path().read_text(encoding="utf-8")


def test_hardened_labels_are_named_everywhere(
    browser: Browser, lidc_report: Path, tmp_path: Path
) -> None:
    opened = Opened(browser, lidc_report)
    page, words = opened.page, "ECE against hardened labels"
    about_the_choice = "section:has(:is(#diagram-title, #where-title, #sweep-title, #bins-title))"
    assert words not in " ".join(page.locator(about_the_choice).all_inner_texts())
    page.locator("input[name=labels][value=hard]").check()
    page.wait_for_function("[...document.querySelectorAll('#sweep text')].some((each) => "
                           f"each.textContent === '{words}')")  # fmt: skip
    assert page.locator("#models thead").inner_text().split("\t")[1] == words
    for chart, title in (
        ("diagram", "mean hardened label in the bin"),
        ("contributions", f"part of {words}"),
        ("sweep", words),
    ):
        assert title in " ".join(page.locator(f"#{chart} svg text").all_text_contents())
    shown = " ".join(page.locator(about_the_choice).all_inner_texts())
    assert shown.count("SMECE") == 1  # the choice of the labels as they are
    assert words in str(page.locator("#diagram").get_attribute("aria-label"))
    assert page.locator("#choice").text_content() == f"10 bins, {words}."
    nodules = lidc_malignancy()
    y, p = sc.harden(nodules["soft_malignant"]), nodules["prob_rf_all"]
    name, text = downloaded(opened, "#save-csv")
    assert name == "reliability_hardened.csv"
    rows = list(csv.DictReader(text.splitlines()))
    assert list(rows[0])[5:] == [
        "mean_hardened_label", "hardened_gap", "hardened_gap_low", "hardened_gap_high", "labels",
    ]  # fmt: skip
    assert {row["labels"] for row in rows} == {"hardened"}
    assert page.locator("#bin-caption").text_content() == "10 bins, hardened labels"
    notes = page.locator(".soft-only")
    assert notes.count() >= 4
    assert all(note.is_visible() for note in notes.all())
    means = [float(row["mean_hardened_label"]) for row in rows[:10]]
    assert means == pytest.approx(sc.reliability(y, p).mean_label, rel=1e-5)
    name, text = downloaded(opened, "#save-json")  # has both kinds of labels
    (tmp_path / name).write_text(text, encoding="utf-8")
    hardened = sc.load(tmp_path / name)["prob_rf_all"].hardened()
    assert_same_table(hardened, sc.reliability(y, p, n_votes=nodules["n_readers"]))
    page.locator("input[name=labels][value=soft]").check()
    page.wait_for_function("[...document.querySelectorAll('#sweep text')].some((each) => "
                           "each.textContent === 'SMECE')")  # fmt: skip
    assert words not in " ".join(page.locator(about_the_choice).all_inner_texts())
    assert downloaded(opened, "#save-csv")[0] == "reliability.csv"
    assert not any(note.is_visible() for note in notes.all())
    assert opened.troubles == []


def test_last_of_rapid_choices_is_drawn(browser: Browser, lidc_report: Path) -> None:
    opened = Opened(browser, lidc_report)
    for labels in ("hard", "soft", "hard"):
        opened.page.locator(f"input[name=labels][value={labels}]").check()
    opened.choose_bins(5)
    opened.page.wait_for_function("views.diagram.data('bins').length === 10")
    nodules = lidc_malignancy()
    y = sc.harden(nodules["soft_malignant"])
    drawn = opened.page.evaluate("views.diagram.data('bins').slice(0, 5).map((row) => row.y)")
    means = sc.reliability(y, nodules["prob_rf_all"], bins=5).mean_label
    assert drawn == pytest.approx(means, rel=1e-5)
    assert opened.troubles == []


def test_threshold_slider_shows_the_numbers_of_net_benefit(
    browser: Browser, lidc_report: Path
) -> None:
    opened = Opened(browser, lidc_report)
    page, nodules = opened.page, lidc_malignancy()
    assert page.locator("#threshold-shown").text_content() == "5%"
    assert "706 rows lie below" in str(page.locator("#below-0").text_content())
    page.locator("#threshold").focus()
    for _ in range(15):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("views.decision.data('threshold')[0].threshold === 0.2")
    for k, model in enumerate(MODELS):
        rel = sc.reliability(nodules["soft_malignant"], nodules[model], bins=sc.Bins.grid())
        found = sc.net_benefit(rel, [0.2])
        assert page.locator(f"#below-{k}").text_content() == found.sentences[0]
        assert page.locator(f"#benefit-{k}").text_content() == f"{found.value[0]:.4f}"
        assert page.locator(f"#cost-{k}").text_content() == f"{found.cost[0]:.4f}"
    assert page.locator("#decision-caption").text_content() == "Threshold 20%, labels as they are"
    page.locator("#model-0").uncheck()
    page.wait_for_function("views.decision.data('decision').length === 99")
    assert opened.troubles == []


def test_limit_of_disagreement_changes_sentences_and_chart(
    browser: Browser, lidc_report: Path
) -> None:
    opened = Opened(browser, lidc_report)
    page, nodules = opened.page, lidc_malignancy()
    limits = page.evaluate("report.route.limits")
    page.locator("#model-0").uncheck()
    for name, limit in (("1%", 0.01), ("20%", 0.2)):
        page.locator("#disagreement").select_option(name)
        page.wait_for_function(f"views.route.data('limit')[0].risk === {limit}")
        assert str(limit) == page.locator("#disagreement-typed").text_content()
        assert f"At most {name} of people" in str(page.locator("#route-caption").text_content())
        for k, model in enumerate(MODELS):
            found = sc.route(nodules["soft_malignant"], nodules[model], max_disagreement=limit)
            row = page.locator("#route-rows tr").nth(k)
            assert row.locator("th .quiet").text_content() == found.sentence
            cells = page.evaluate(f"report.route.models[{k}].shown[{limits.index(limit)}]")
            assert row.locator("td").all_text_contents() == cells
        drawn = page.evaluate("views.route.data('rules')")
        assert {mark["model"] for mark in drawn} == ({MODELS[1]} if limit > 0.1 else set())
    assert [mark["kind"] for mark in drawn] == ["the rule", "hardened labels"]
    assert {row["model"] for row in page.evaluate("views.route.data('route')")} == {MODELS[1]}
    assert opened.troubles == []


@pytest.mark.parametrize("chart", ["diagram", "contributions", "sweep", "decision", "route"])
def test_charts_can_be_saved(browser: Browser, lidc_report: Path, chart: str) -> None:
    opened = Opened(browser, lidc_report)
    if chart == "sweep":
        opened.page.locator("input[name=labels][value=hard]").check()
        opened.page.wait_for_function("[...document.querySelectorAll('#sweep text')].some("
                                      "(each) => each.textContent.startsWith('ECE'))")  # fmt: skip
    for kind, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
        with opened.page.expect_download() as waiting:
            opened.page.locator(f"button[data-chart={chart}][data-kind={kind}]").click()
        suffix = "_hardened" if chart == "sweep" else ""
        assert waiting.value.suggested_filename == f"{chart}{suffix}.{kind}"
        saved = waiting.value.path().read_bytes()
        assert saved.startswith(start)
        for model in MODELS if kind == "svg" else ():  # in the legend
            assert f">{model}</text>" in saved.decode()
    assert opened.troubles == []


def test_every_segment_can_be_downloaded(
    browser: Browser, tmp_path: Path, rng: np.random.Generator
) -> None:
    p, by = rng.random(3000), np.arange(3000) % 60
    sc.write_report(tmp_path / "r.html", p**2, {"m": p}, by=by)
    opened = Opened(browser, tmp_path / "r.html")
    name, text = downloaded(opened, "#save-segments")
    rows = list(csv.DictReader(text.splitlines()))
    assert name == "segments.csv"
    assert sorted(int(row["segment"]) for row in rows) == list(range(60))
    for row in rows:
        at = by == int(row["segment"])
        rel = sc.reliability((p**2)[at], p[at])
        together = sc.smece_interval(rel, level=1 - 0.05 / 60)
        assert float(row["smece"]) == pytest.approx(rel.smece)
        assert float(row["mean_gap"]) == pytest.approx(rel.bias)
        limits = float(row["low"]), float(row["high"])
        assert limits == pytest.approx((together.low, together.high))
    folded = opened.page.locator("details:has(.segments)")
    assert not folded.locator("table").is_visible()
    folded.locator("summary").click()
    assert folded.locator("tbody tr").count() == 40
    assert folded.locator("table").is_visible()
    assert opened.troubles == []


def test_note_on_groups_is_shown_with_hardened_labels(browser: Browser, tmp_path: Path) -> None:
    nodules = lidc_malignancy()
    path = tmp_path / "r.html"
    sc.write_report(
        path, nodules["soft_malignant"], {"forest": nodules["prob_rf_all"]},
        groups=nodules["patient"],
    )  # fmt: skip
    opened = Opened(browser, path)
    note = opened.page.locator("#no-groups")
    assert not note.is_visible()
    opened.page.locator("input[name=labels][value=hard]").check()
    note.wait_for(state="visible")
    assert opened.troubles == []


def test_bins_of_unequal_width_are_drawn_without_choices(browser: Browser, tmp_path: Path) -> None:
    p = np.linspace(0, 1, 200)
    path = tmp_path / "r.html"
    sc.write_report(path, (p > 0.5).astype(float), {"m": p}, bins=[0, 0.05, 0.4, 1])
    opened = Opened(browser, path)
    drawn = opened.page.evaluate("views.diagram.data('bins').map((row) => [row.left, row.right])")
    assert drawn == [[0, 0.05], [0.05, 0.4], [0.4, 1]]
    assert opened.page.locator("#controls fieldset:visible").count() == 0
    assert opened.troubles == []


def test_hostile_names_are_shown_as_text(
    browser: Browser, tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.random(90)
    path = tmp_path / "hostile.html"
    sc.write_report(
        path, p**2, {HOSTILE: p, "=1+1": p**3}, by=[HOSTILE, "javascript:alert(1)", "c"] * 30,
        title=HOSTILE,
    )  # fmt: skip
    opened = Opened(browser, path)
    opened.page.hover("#diagram svg .role-mark path >> nth=5", force=True)
    opened.page.wait_for_timeout(200)
    opened.choose_bins(20)
    with opened.page.expect_download() as waiting:
        opened.page.locator("#save-csv").click()
    text = waiting.value.path().read_text(encoding="utf-8")
    assert "\n'=1+1," in text
    assert opened.page.locator("h1").text_content() == HOSTILE
    assert opened.page.locator("img").count() == 0
    assert opened.troubles == []
    assert opened.requests == [opened.own]


def test_random_names_run_no_script(
    browser: Browser, tmp_path: Path, rng: np.random.Generator
) -> None:
    """Every hostile name as a model and as a segment is shown as text and never run."""
    by = [name or "empty" for name in NAMES] * 3
    p = rng.random(len(by))
    path = tmp_path / "hostile.html"
    names = [name for name in NAMES if len(name) < 100]
    for start in range(0, len(names), 8):  # at most eight models per page
        some = names[start : start + 8]
        label = f"label {some[-1]}"
        sc.write_report(path, p**2, dict.fromkeys(some, p), by=by, title=some[0], label=label)
        opened = Opened(browser, path)
        escaped = [
            "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
            for name in some
        ]
        assert opened.page.locator("#models .name").all_text_contents() == escaped
        titles = "all => all.map(e => e.title || e.textContent)"
        in_cards = opened.page.eval_on_selector_all(".card h2 :is(.clipped, .name)", titles)
        assert in_cards == escaped
        with opened.page.expect_download() as waiting:
            opened.page.locator("#save-json").click()
        saved = json.loads(waiting.value.path().read_text(encoding="utf-8"))
        assert saved["models"] == some
        assert opened.page.locator("img").count() == 0
        assert opened.page.title() != "run"
        assert opened.troubles == []
        assert opened.requests == [opened.own]


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_first_screen_has_the_whole_answer(
    browser: Browser, lidc_report: Path, width: int, height: int, scheme: str
) -> None:
    viewport = {"width": width, "height": height}
    page = Opened(browser, lidc_report, viewport=viewport, color_scheme=scheme).page
    card = page.locator("#answers .card").first
    for part in ("h2 .verdict", ".numbers", ".asked", "code"):
        box = card.locator(part).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= height
    assert "softcal recalibrate" in card.locator("code").inner_text()
    assert not card.locator(".judged").is_visible()
    card.locator("summary").first.click()
    assert card.locator(".judged").is_visible()


def test_first_screen_has_the_verdicts_of_four_models(
    browser: Browser, tmp_path: Path, rng: np.random.Generator
) -> None:
    p = rng.random(500)
    models = {f"model_{k}": p ** (1 + k / 4) for k in range(4)}
    sc.write_report(tmp_path / "r.html", p, models)
    page = Opened(browser, tmp_path / "r.html", viewport={"width": 1280, "height": 800}).page
    for part in (".verdict", ".numbers"):
        boxes = [each.bounding_box() for each in page.locator(f"#answers {part}").all()]
        assert len(boxes) == 4
        assert all(box is not None and box["y"] + box["height"] <= 800 for box in boxes)


def test_contents_scroll_to_their_sections(browser: Browser, lidc_report: Path) -> None:
    page = Opened(browser, lidc_report).page
    for link in page.locator("nav a").all():
        link.click()
        heading = page.locator(str(link.get_attribute("href")))
        assert heading.inner_text() == link.inner_text()
        box = heading.bounding_box()
        assert box is not None
        assert -1 < box["y"] < 720  # within rounding


@pytest.mark.parametrize("width", [360, 375, 1280])
def test_page_fits_the_screen(browser: Browser, lidc_report: Path, width: int) -> None:
    """Nothing scrolls sideways, no cell is cut, and words break only after _ - . and /."""
    page = Opened(browser, lidc_report, viewport={"width": width, "height": 800}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    too_narrow = "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
    assert page.eval_on_selector_all(".scroll, th, td", too_narrow) == []
    broken = page.evaluate(
        """() => {
          const out = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          while (walker.nextNode()) {
            const node = walker.currentNode, range = document.createRange();
            for (const word of node.data.matchAll(/[^\\s_./\\u2013-]+/g)) {
              range.setStart(node, word.index);
              range.setEnd(node, word.index + word[0].length);
              const lines = new Set([...range.getClientRects()].map((place) => place.top));
              if (lines.size > 1) out.push(word[0]);
            }
          }
          return out;
        }"""
    )
    assert broken == []


def test_long_word_does_not_widen_the_page(browser: Browser, tmp_path: Path) -> None:
    name = 200 * "w"
    p = np.linspace(0, 1, 120)
    sc.write_report(
        tmp_path / "r.html", p**2, {name: p, f"{name}2": p**3}, by=[name, "b"] * 60, title=name,
        label=f"{name}3",
    )  # fmt: skip
    page = Opened(browser, tmp_path / "r.html", viewport={"width": 375, "height": 800}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    wide = "all => all.filter(e => e.scrollWidth > e.clientWidth).length"
    assert page.eval_on_selector_all(".scroll", wide) == 0


@pytest.mark.parametrize("models", [4, 8])
def test_answers_of_all_models_are_on_the_first_screen(
    browser: Browser, models: int, tmp_path: Path, rng: np.random.Generator
) -> None:
    names = [f"model_{k}_" + "a_name_of_sixty_characters_" * 2 + f"__{k}" for k in range(models)]
    assert {len(name) for name in names} == {65}
    p = rng.uniform(0.02, 0.98, 900)
    y = rng.binomial(4, np.clip(p + 0.1, 0, 1)) / 4
    sc.write_report(tmp_path / "report.html", y, dict.fromkeys(names, p))
    page = Opened(browser, tmp_path / "report.html", viewport={"width": 1280, "height": 800}).page
    for k, name in enumerate(names):
        card = page.locator(".card").nth(k)
        assert card.locator(f'h2 [title="{name}"]').inner_text() == f"{name[:20]}…{name[-11:]}"
        for part in ("h2 .verdict", ".numbers"):
            box = card.locator(part).bounding_box()
            assert box is not None
            assert box["y"] + box["height"] < 800
        assert card.locator("code").is_visible() is False
        card.locator("summary").first.click()
        assert card.locator("code").first.is_visible()
        assert "Next" in card.inner_text()
        card.locator("summary").first.click()
    phone = Opened(browser, tmp_path / "report.html", viewport={"width": 390, "height": 844}).page
    assert phone.evaluate("document.documentElement.scrollWidth") == 390


def test_print_shows_folded_content_and_no_controls(
    browser: Browser, lidc_report: Path, tmp_path: Path
) -> None:
    page = Opened(browser, lidc_report, viewport={"width": 718, "height": 1047}).page  # A4
    page.locator("#model-1").uncheck()
    page.evaluate(
        """() => addEventListener("beforeprint", () => {
          window.openOnPaper = [...document.querySelectorAll("details")].map((each) => each.open);
        })"""
    )
    page.pdf(path=tmp_path / "report.pdf")
    assert page.evaluate("window.openOnPaper") == [True] * page.locator("details").count()
    assert page.locator("details[open]").count() == 0
    page.emulate_media(media="print")
    assert page.locator(":is(input, button):visible").count() == 0
    assert page.locator("#choice").inner_text() == "10 bins, labels as they are."
    assert page.locator("#models tbody tr:visible").all_inner_texts() == [
        "prob_rf_all\t0.0952\t0.081 to 0.106"
    ]
    diagram, content = (page.locator(each).bounding_box() for each in ("#diagram svg", "#models"))
    assert diagram is not None
    assert content is not None
    assert diagram["width"] >= 0.98 * content["width"]
    # Unbreakable parts are short enough to leave no half page blank.
    kept_whole = page.eval_on_selector_all(
        "body *",
        """all => all.filter((e) => getComputedStyle(e).breakInside === "avoid")
          .map((e) => e.getBoundingClientRect().height)""",
    )
    assert 0 < max(kept_whole) < 1047 / 2


def test_page_is_accessible(browser: Browser, lidc_report: Path) -> None:
    """Headings are in order, charts and controls have names, and dark contrast is sufficient."""
    for scheme in ("light", "dark"):
        page = Opened(browser, lidc_report, color_scheme=scheme).page
        levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(h => +h.tagName[1])")
        assert levels[0] == 1
        assert levels.count(1) == 1
        pictures = page.eval_on_selector_all(
            "[role=img]", "all => all.map(e => e.getAttribute('aria-label'))"
        )
        assert all(pictures)
        assert "SMECE 0.0952" in pictures[0]
        unnamed = "all => all.filter(e => !(e.labels && e.labels.length) && !e.textContent).length"
        assert page.eval_on_selector_all("input, button", unnamed) == 0
        contrast = page.evaluate(
            """() => {
              const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number)
                .map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
              const style = (e) => getComputedStyle(document.querySelector(e));
              const pairs = [["body", "body", "color"], [".quiet", "body", "color"],
                [".verdict", ".card", "color"], ["summary", "body", "color"]];
              return pairs.map(([front, back, kind]) => {
                const [a, b] = [light(style(front)[kind]), light(style(back).backgroundColor)];
                return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
              });
            }"""
        )
        assert min(contrast) >= 4.5
